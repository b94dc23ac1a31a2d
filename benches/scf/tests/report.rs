//! What the program prints for people.

mod common;

use common::{json, molecule, number, scf};

#[test]
fn the_report_has_what_a_chemist_looks_for() {
    let output = scf(&["--ranks", "2", "--basis", "sto-3g"], &molecule("h2o.xyz"));
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    for words in [
        "H2O (charge 0)",
        "STO-3G (spherical functions)",
        "7 functions",
        "repulsion 9.1920946687",
        "converged in",
        "total energy      -74.9629856142",
        "orbital energies",
        "HOMO-LUMO gap",
        "1.7257 debye",
        "load imbalance",
        "counter",
        "diagonalise",
    ] {
        assert!(text.contains(words), "{words:?} missing in:\n{text}");
    }
}

#[test]
fn shares_of_time_are_shares() {
    for ranks in ["1", "3"] {
        let result = json(&["--ranks", ranks], &molecule("h2o.xyz"), 0);
        let efficiency = number(&result, "/efficiency");
        assert!(efficiency > 0.0 && efficiency <= 1.0, "{efficiency}");
    }
}
