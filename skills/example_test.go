package skills_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/skills"
)

// A host lists the skills of a server, loads one, and reads what that refers to.
func Example() {
	ctx := context.Background()
	c, err := client.Connect(ctx, client.Handler(newShelf()), nil)
	if err != nil {
		panic(err)
	}
	defer c.Close()

	r, err := skills.Open(ctx, c, nil)
	if errors.Is(err, skills.ErrNotOffered) {
		fmt.Println("The server has no skills.")
		return
	}
	for skill, err := range r.List(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %s\n", skill.Name(), skill.Description())

		// The user has agreed that it be used.
		loaded, err := r.Load(ctx, skill)
		if err != nil {
			fmt.Println(err) // it is not what the entry says
			continue
		}
		file, err := loaded.Read(ctx, "references/FORMS.md")
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%s", file.Bytes)
	}
	// Output:
	// pdf: Fills in forms.
	// Forms are filled in.
}
