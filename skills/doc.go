// Package skills is the host's side of the skills extension
// (io.modelcontextprotocol/skills, SEP-2640): it lists the skills that a server has,
// reads their files when they are wanted, and hands out nothing that is not what the
// skill's entry says.
//
//	r, err := skills.Open(ctx, c, nil) // c is a *client.Client
//	...
//	for skill, err := range r.List(ctx) { ... } // reads no file
//	loaded, err := r.Load(ctx, skill)           // reads and verifies SKILL.md
//	form, err := loaded.Read(ctx, "references/FORMS.md")
//
// # What is verified
//
// The entry of a skill (a [Skill]) says which files it has, with the size and the
// SHA-256 digest of each, and what the frontmatter of its SKILL.md is. [Reader.Load]
// compares all of that with the SKILL.md that it reads, and only what it returns, a
// [Loaded], can read the skill's other files: those that the entry lists, each compared
// with size and digest. What differs is a [*VerificationError]. Files that are out of
// date are recovered from by [Reader.Get], which has the server's newest entry, and by
// loading that.
//
// A skill whose files are made up when they are read ([Skill.Dynamic]) has no digests.
// Of it only the frontmatter can be compared, and [Options].RefuseDynamic has it
// refused.
//
// That everything is as the entry says means that the server agrees with itself, and
// nothing else: entry and files come from the same server. What a host must ask its
// user, and how it must mark what comes from a skill, is the host's business
// (SEP-2640, Security Considerations).
//
// # Frontmatter
//
// Scalars are read by the core schema of YAML 1.2, so that yes and 2026-07-28 are
// strings; values are compared as JSON, numbers by their value. What JSON has no form
// for (tags, merge keys, infinities) is refused, as is what would take too much to read:
// more than [MaxFrontmatter] bytes, [MaxValues] values with aliases counted as what they
// stand for, or [MaxDepth] levels.
package skills
