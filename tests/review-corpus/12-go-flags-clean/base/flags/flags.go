// Package flags switches features on for a share of the users.
package flags

import "hash/fnv"

// Flag is on for Percent of the users.
type Flag struct {
	Name    string
	Percent uint32
}

// Set is all flags by name.
type Set map[string]Flag

// Enabled says whether a user has the feature. The same user always gets the same answer.
func (s Set) Enabled(name, user string) bool {
	flag, known := s[name]
	if !known {
		return false
	}
	hash := fnv.New32a()
	hash.Write([]byte(flag.Name))
	hash.Write([]byte{0})
	hash.Write([]byte(user))
	return hash.Sum32()%100 < flag.Percent
}
