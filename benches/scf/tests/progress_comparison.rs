//! `--compare-progress` shows what the progress threads do, and fails if they do nothing.

mod common;

use common::{json, molecule, number, scf};

#[test]
fn the_thread_serves_requests_and_the_energy_stays() {
    let both = json(&["--compare-progress", "--ranks", "2"], &molecule("h2o.xyz"), 0);
    assert!(number(&both, "/thread/served_by_thread") > 0.0);
    assert!(number(&both, "/none/served_by_thread") < 0.5);
    assert!(number(&both, "/none/served_by_main") > 0.0);
    assert!(number(&both, "/energy_difference").abs() < 1e-10);
}

#[test]
fn the_table_is_for_people() {
    let output = scf(&["--compare-progress", "--ranks", "2", "--basis", "sto-3g"], &molecule("h2o-2.xyz"));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    for word in ["thread", "none", "counter", "accumulate", "served by main", "energy"] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn halves_that_do_not_converge_are_shown_and_told_by_the_exit_code() {
    let both = json(&["--compare-progress", "--ranks", "2", "--max-iterations", "3"], &molecule("h2o.xyz"), 3);
    assert_eq!(both["thread"]["converged"], false);
    assert_eq!(both["none"]["converged"], false);
}
