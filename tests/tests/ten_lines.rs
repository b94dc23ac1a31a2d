//! The program that is compared with Global Arrays' C and Fortran finds what those do, on any number of ranks.

use tests::matrix;

#[allow(dead_code, reason = "its `main` is for those who run it")]
#[path = "../../global-arrays/examples/ten_lines.rs"]
mod example;

#[test]
fn ten_lines_find_what_global_arrays_does() {
    matrix(|world| assert_eq!(example::ten_lines(world).unwrap(), [9.0, 1225.0, 500_487.5]));
}
