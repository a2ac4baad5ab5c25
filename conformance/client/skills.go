package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/skills"
)

// listSkills lists the skills, and loads none.
func listSkills(ctx context.Context, c *client.Client) error {
	_, _, err := skillsOf(ctx, c)
	return err
}

func skillsOf(ctx context.Context, c *client.Client) (*skills.Reader, []*skills.Skill, error) {
	r, err := skills.Open(ctx, c, nil)
	if err != nil {
		return nil, nil, err
	}
	list, err := collect(r.List(ctx))
	if err == nil && len(list) == 0 {
		err = errors.New("there are no skills")
	}
	return r, list, err
}

// refuse uses the skills of a server as a host does, all files of each. It fails unless
// that of each ends as it must.
func refuse(want error) func(context.Context, *client.Client) error {
	return func(ctx context.Context, c *client.Client) error {
		r, list, err := skillsOf(ctx, c)
		if err != nil {
			return err
		}
		for _, skill := range list {
			if err := readAll(ctx, r, skill); !errors.Is(err, want) {
				return fmt.Errorf("reading %s ended with %v, not with: %w", skill.URI, err, want)
			}
		}
		return nil
	}
}

// readAll loads a skill and reads its files.
func readAll(ctx context.Context, r *skills.Reader, skill *skills.Skill) error {
	loaded, err := r.Load(ctx, skill)
	if err != nil {
		return err
	}
	for _, file := range skill.Files {
		if _, err := loaded.Read(ctx, file.URI); err != nil {
			return err
		}
	}
	return nil
}
