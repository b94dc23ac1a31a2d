//! Mathematics on whole arrays and patches: what all ranks of an array do together, each on what it owns.
//!
//! Every operation is collective over the group of the array it changes (or, where it changes none, of its first), and
//! begins and ends with a sync of that group. Operands whose elements lie on the same ranks are read in place; others
//! are fetched.

mod fill;
mod inplace;
mod operand;
