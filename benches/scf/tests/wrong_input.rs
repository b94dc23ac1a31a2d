//! Whatever is wrong with the input is said once, with its place, and the exit code tells.

mod common;

use common::{json, molecule, number, scf, written};

/// Runs with wrong input; returns what was said, which must be one line.
fn complaint(arguments: &[&str], file: &std::path::Path) -> String {
    let output = scf(arguments, file);
    assert_eq!(output.status.code(), Some(1), "{arguments:?} {file:?}");
    assert!(output.stdout.is_empty());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
    text
}

#[test]
fn malformed_files_are_named_with_line_and_column() {
    let text = complaint(&["-n", "2"], &written("letters.xyz", "2\n\nH 0 0 0\nH 0 0 O.74\n"));
    assert!(text.contains("letters.xyz:4:7:") && text.contains("O.74"), "{text}");
    let text = complaint(&[], &written("short.xyz", "3\nwater\nO 0 0 0\n"));
    assert!(text.contains("short.xyz:4:1:") && text.contains("1 of 3"), "{text}");
    let text = complaint(&[], &written("count.xyz", "water\n"));
    assert!(text.contains("count.xyz:1:1:"), "{text}");
    let text = complaint(&[], std::path::Path::new("/nowhere/at-all.xyz"));
    assert!(text.contains("/nowhere/at-all.xyz"), "{text}");
}

#[test]
fn unknown_names_come_with_a_list() {
    let text = complaint(&[], &written("unobtainium.xyz", "1\n\nUo 0 0 0\n"));
    assert!(text.contains("Uo") && text.contains("Ne"), "{text}");
    let text = complaint(&["--basis", "6-32g"], &molecule("h2.xyz"));
    assert!(text.contains("6-32g") && text.contains("cc-pVDZ"), "{text}");
    let text = complaint(&[], &written("zinc.xyz", "1\n\nZn 0 0 0\n"));
    assert!(text.contains("Zn") && text.contains("H-Ar"), "{text}");
}

#[test]
fn molecules_that_cannot_be_are_refused() {
    let text = complaint(&[], &written("radical.xyz", "2\nOH\nO 0 0 0\nH 0 0 0.97\n"));
    assert!(text.contains("9 electrons") && text.contains("--charge"), "{text}");
    let text = complaint(&[], &written("twice.xyz", "3\n\nO 0 0 0\nH 0 0 1\nH 0 0 1.0001\n"));
    assert!(text.contains("atoms 2 and 3") && text.contains("lines 4 and 5"), "{text}");
    let text = complaint(&["--charge", "2"], &molecule("h2.xyz"));
    assert!(text.contains("charge 2"), "{text}");
}

#[test]
fn a_basis_of_ones_own_can_be_given_and_is_checked() {
    let good = written("own.nw", "# mine\nH S\n 1.24 0.4\n 0.3 0.7\n");
    let result = json(&["--basis", good.to_str().unwrap()], &molecule("h2.xyz"), 0);
    assert!(number(&result, "/energy") < -1.0);
    let bad = written("bad.nw", "H S\n 1.24 0.4\n 0.3 x\n");
    let text = complaint(&["--basis", bad.to_str().unwrap()], &molecule("h2.xyz"));
    assert!(text.contains("bad.nw:3:6:"), "{text}");
}

#[test]
fn usage_errors_have_a_code_of_their_own() {
    for wrong in [&["--cartesian", "--spherical"][..], &["--ranks", "0"], &["--convergence", "-1"]] {
        assert_eq!(scf(wrong, &molecule("h2.xyz")).status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn more_ranks_than_tasks_is_no_problem() {
    let result = json(&["--ranks", "9", "--basis", "sto-3g"], &molecule("h2.xyz"), 0);
    assert!((number(&result, "/energy") + 1.116_682_199_9).abs() < 1e-7);
    assert!((number(&result, "/ranks") - 9.0).abs() < 0.5);
}

#[test]
fn no_convergence_is_an_exit_code_and_the_best_energy() {
    let result = json(&["--ranks", "2", "--max-iterations", "3"], &molecule("h2o.xyz"), 3);
    assert_eq!(result["converged"], false);
    assert!((number(&result, "/energy") + 76.0).abs() < 0.1);
    let output = scf(&["--ranks", "2", "--max-iterations", "3"], &molecule("h2o.xyz"));
    assert_eq!(output.status.code(), Some(3));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(out.contains("NOT CONVERGED") && out.contains("best energy"), "{out}");
    assert!(err.contains("best energy so far -7") && err.trim_end().lines().count() == 1, "{err}");
}

#[test]
fn a_basis_too_small_for_the_electrons_is_found_by_the_ranks_and_said_once() {
    let one = written("one.nw", "O S\n 1.0 1.0\nH S\n 1.0 1.0\n");
    let text = complaint(&["--ranks", "3", "--basis", one.to_str().unwrap(), "--json"], &molecule("h2o.xyz"));
    assert!(text.contains("5 occupied orbitals") && text.contains("gives 3"), "{text}");
}
