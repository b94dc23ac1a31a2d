//! Energies agree with NWChem 7.0.2 and do not depend on ranks, protocol or progress mode.

mod common;

use common::{json, molecule, number, written};

/// NWChem's energy of the shipped water molecule, STO-3G.
const STO_3G: f64 = -74.962_985_614_278;
/// The same, cc-pVDZ with spherical functions.
const CC_PVDZ: f64 = -76.026_784_861_244;

fn everywhere(basis: &str, reference: f64) {
    let mut first = None;
    for ranks in ["1", "2", "3", "4"] {
        for protocol in ["rma", "am"] {
            for progress in ["thread", "none"] {
                let how = ["--basis", basis, "--ranks", ranks, "--protocol", protocol, "--progress", progress];
                let result = json(&how, &molecule("h2o.xyz"), 0);
                let energy = number(&result, "/energy");
                assert!((energy - reference).abs() < 1e-7, "{how:?}: {energy:.12}");
                let first = *first.get_or_insert(energy);
                assert!((energy - first).abs() < 1e-10, "{how:?}: {energy:.12} against {first:.12}");
                assert_eq!(number(&result, "/ranks").to_string(), ranks);
                assert_eq!(result["progress"], progress);
                assert_eq!(result["protocol"], protocol);
            }
        }
    }
}

#[test]
fn water_sto_3g() {
    everywhere("sto-3g", STO_3G);
}

#[test]
fn water_cc_pvdz() {
    everywhere("cc-pvdz", CC_PVDZ);
}

/// PySCF 2.14 with the shipped tables and NWChem's angstrom, converged to 1e-11.
#[test]
fn other_molecules_and_bases() {
    for (file, basis, energy) in [
        ("h2.xyz", "cc-pvtz", -1.132_954_943_9),
        ("h2o.xyz", "6-31++g**", -76.030_754_587_8),
        ("h2o.xyz", "6-311g(d,p)", -76.046_427_038_1),
        ("nh3.xyz", "6-31g*", -56.184_146_225_2),
        ("ch4.xyz", "3-21g", -39.976_831_442_0),
    ] {
        let found = number(&json(&["--basis", basis, "--ranks", "2"], &molecule(file), 0), "/energy");
        assert!((found - energy).abs() < 1e-7, "{file} {basis}: {found:.10}");
    }
}

#[test]
fn the_trimer_in_the_default_basis_is_balanced() {
    let result = json(&["--ranks", "2"], &molecule("h2o-3.xyz"), 0);
    assert_eq!(result["functions"], "cartesian");
    assert!((number(&result, "/energy") + 228.060_002_557).abs() < 1e-7);
    assert!(number(&result, "/load_imbalance") < 0.5);
    for phase in ["integrals", "get", "accumulate", "counter", "diagonalise", "wall"] {
        assert!(number(&result, &format!("/seconds/{phase}")) > 0.0);
    }
}

#[test]
fn choices_of_tasks_guess_and_builds_do_not_change_the_energy() {
    let base = number(&json(&["--ranks", "2"], &molecule("h2o.xyz"), 0), "/energy");
    for how in [
        &["--block", "1"][..],
        &["--block", "100"],
        &["--chunk", "7"],
        &["--guess", "core"],
        &["--full-builds"],
        &["--screening", "1e-13"],
    ] {
        let energy = number(&json(&[&["--ranks", "3"], how].concat(), &molecule("h2o.xyz"), 0), "/energy");
        assert!((energy - base).abs() < 1e-8, "{how:?}: {energy:.12} against {base:.12}");
    }
    let spherical = json(&["--spherical"], &molecule("h2o.xyz"), 0);
    assert!((number(&spherical, "/energy") - base).abs() > 1e-5);
}

/// NWChem 7.0.2: third-row atoms, Cartesian d functions, diffuse functions, ions.
#[test]
fn nwchems_energies_of_other_elements_and_of_an_ion() {
    let silane =
        "5\n\nSi 0 0 0\nH .8544 .8544 .8544\nH -.8544 -.8544 .8544\nH -.8544 .8544 -.8544\nH .8544 -.8544 -.8544\n";
    for (name, text, charge, basis, energy) in [
        ("h2s.xyz", "3\n\nS 0 0 0\nH .9617 0 .9268\nH -.9617 0 .9268\n", "0", "6-31g**", -398.674_800_263_0),
        ("sih4.xyz", silane, "0", "6-31g**", -291.230_819_121_9),
        ("oh.xyz", "2\n\nO 0 0 0.3\nH 0 0 1.264\n", "-1", "aug-cc-pvdz", -75.395_889_559_2),
    ] {
        let how = ["--ranks", "2", "--convergence", "1e-6", "--charge", charge, "--basis", basis];
        let result = json(&how, &written(name, text), 0);
        let found = number(&result, "/energy");
        assert!((found - energy).abs() < 1e-7, "{name} {basis}: {found:.10}");
        if name == "oh.xyz" {
            let dipole: f64 = (0..3).map(|k| number(&result, &format!("/dipole/{k}")).powi(2)).sum();
            assert!((dipole.sqrt() - 0.604_36).abs() < 1e-5, "{dipole}");
        }
    }
}
