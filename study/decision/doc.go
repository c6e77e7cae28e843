// Package decision renders everything that NCCL decides for a communicator as one document: system and paths,
// graphs before and after all ranks agree, channels, cost model, and the choice with its chunking for every
// power of two. `simccl inspect --json` prints it.
//
// Input: a comm.Comm. Output: Document, whose JSON has the keys, order and number format of the project's
// reference decisions. It is pure: it decides nothing and knows neither files nor flags.
package decision
