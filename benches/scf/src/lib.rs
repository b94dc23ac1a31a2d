//! Closed-shell Hartree-Fock on distributed arrays: the application kernel of this project.
//!
//! ```text
//!   cli  ->  molecule, basis  ->  shells  ->  one_electron, pairs, eri      (chemistry, serial)
//!                                                     |
//!                                   tasks, contract (what a task is, how it is computed)
//!                                                     |
//!   compare, rank  ->  scf  ->  solver (rank 0)   fock (distributed arrays, shared counter)
//!                       |
//!                    report, json
//! ```
//!
//! Only `fock`, `scf`, `rank` and `compare` know that there are ranks. The integrals come from
//! the crate `integral`, the eigenvectors from `faer`, the basis sets from published tables
//! in `basis/`.

pub mod basis;
pub mod cli;
pub mod compare;
pub mod contract;
pub mod diis;
pub mod elements;
pub mod eri;
pub mod error;
pub mod fock;
pub mod guess;
pub mod input;
pub mod json;
pub mod linalg;
pub mod molecule;
pub mod one_electron;
pub mod pairs;
pub mod rank;
pub mod report;
pub mod scf;
pub mod schwarz;
pub mod shells;
pub mod solver;
pub mod spherical;
pub mod tasks;
pub mod text;
pub mod times;
