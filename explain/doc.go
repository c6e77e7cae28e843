// Package explain says why NCCL chooses what it chooses for one operation: the
// winner, every rival with its time or the reason it is off, the exact sizes
// at which the choice changes, what is launched, how the bandwidth is derived
// and which link bounds it, and who was refused a path, by which rule, and
// which setting would change that. And it has the glossary: what a word of NCCL
// or of networks means (words/words.md), and one all_reduce from call to wire
// (words/walk.md), which are both pages and source.
//
// Input: a communicator and an operation. Output: Report, as text for people
// or JSON for tools. Pure: it reads decisions and makes none, and knows no
// flags. It has no counterpart in NCCL, whose log gives the winner alone
// (enqueue.cc:741).
package explain
