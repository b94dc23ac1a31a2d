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
    for (shell, place) in
        [("1.0 0.0", "2:5:"), ("1.0 1.0\n1.0 -1.0", "2:5:"), ("1.0 1e300", "2:5:"), ("1e-300 1.0", "2:1:")]
    {
        let bad = written("no-norm.nw", &format!("H S\n{shell}\n"));
        let text = complaint(&["--basis", bad.to_str().unwrap()], &molecule("h2.xyz"));
        assert!(text.contains(&format!("no-norm.nw:{place}")), "{text}");
    }
}

#[test]
fn usage_errors_have_a_code_of_their_own() {
    for (wrong, words) in [
        (&["--cartesian", "--spherical"][..], "cannot be used with"),
        (&["--ranks", "0"], "0 is not in"),
        (&["--convergence=-1"], "a positive number"),
        (&["--convergence", "0"], "a positive number"),
        (&["--convergence=nan"], "a positive number"),
        (&["--charge", "9223372036854775807"], "not in"),
        (&["--protocol", "carrier-pigeon"], "carrier-pigeon"),
        (&["--screening", "1e10"], "--screening 1e10 is too coarse for --convergence 1e-5"),
        (&["--screening", "1e-9", "--convergence", "1e-7"], "at most a thousandth of that (1.00e-10)"),
    ] {
        let output = scf(wrong, &molecule("h2.xyz"));
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {text}");
        assert_eq!(text.matches(words).count(), 1, "{wrong:?}: {text}");
    }
    let fine = json(&["--convergence", "1e-8", "--basis", "sto-3g", "--ranks", "2"], &molecule("h2.xyz"), 0);
    assert!(number(&fine, "/screening") < 1.1e-11);
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
    let how = ["--ranks", "3", "--basis", one.to_str().unwrap()];
    let output = scf(&how, &molecule("h2o.xyz"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{text}");
    assert!(text.contains("5 occupied orbitals") && text.contains("gives 3"), "{text}");
    let result = json(&how, &molecule("h2o.xyz"), 1);
    assert_eq!(result["converged"], false);
    assert!(result["error"].as_str().unwrap().contains("5 occupied orbitals"), "{result}");
}

#[test]
fn the_energy_of_superposed_atoms_is_not_reported() {
    let result = json(&["--ranks", "2", "--max-iterations", "1"], &molecule("h2o.xyz"), 3);
    for field in ["energy", "orbital_energies", "dipole"] {
        assert!(result[field].is_null(), "{result}");
    }
    let output = scf(&["--ranks", "2", "--max-iterations", "1"], &molecule("h2o.xyz"));
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("in 1 iteration; no energy yet"), "{err}");
}

#[test]
fn a_report_that_cannot_be_written_is_a_failure() {
    for how in [&["--json"][..], &[]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_scf"));
        let output = command.args(["--ranks", "2"]).args(how).arg(molecule("h2.xyz")).stdout(full).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert_eq!(text.matches("cannot write to standard output").count(), 1, "{text}");
    }
}

#[test]
fn a_pipe_can_be_the_molecule() {
    let script = format!(
        "cat '{}' | {} --json --ranks 2 --basis sto-3g /dev/stdin",
        molecule("h2.xyz").display(),
        env!("CARGO_BIN_EXE_scf")
    );
    let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!((number(&result, "/energy") + 1.116_682_199_9).abs() < 1e-7);
}

#[test]
fn a_comment_in_any_encoding_is_accepted() {
    let path = written("latin.xyz", "");
    std::fs::write(&path, b"\xef\xbb\xbf2\nWasserstoff, gr\xf6\xdfer\nH 0 0 0\nH 0 0 0.74\n").unwrap();
    json(&["--ranks", "1", "--basis", "sto-3g"], &path, 0);
    let text = complaint(&[], &written("far.xyz", "2\n\nH 0 0 0\nH 0 0 1e200\n"));
    assert!(text.contains("far.xyz:4:7:") && text.contains("angstrom"), "{text}");
}
