//! The result for machines: one JSON object.

use serde_json::{Value, json};

use crate::error::ScfError;
use crate::scf::{DEBYE, Outcome, Problem, Settings};
use crate::times::{PHASES, Times};

/// The whole result as one object. `progress` and `protocol` are the runtime's settings in use.
pub fn object(problem: &Problem, settings: &Settings, outcome: &Outcome, progress: &str, protocol: &str) -> Value {
    let table: Vec<Value> = outcome
        .iterations
        .iter()
        .map(|i| {
            json!({
                "iteration": i.number,
                "energy": i.step.energy,
                "change": if i.step.change.is_nan() { Value::Null } else { json!(i.step.change) },
                "residual": i.step.residual,
                "quartets": i.quartets,
                "seconds": i.seconds,
            })
        })
        .collect();
    let ranks: Vec<Value> = outcome
        .ranks
        .iter()
        .map(|r| {
            json!({
                "seconds": seconds(&r.times),
                "tasks": r.tasks,
                "quartets": r.quartets,
                "served_by_thread": r.served_by_thread,
                "served_by_main": r.served_by_main,
            })
        })
        .collect();
    let mut sum = Times::default();
    for rank in &outcome.ranks {
        for (total, part) in sum.0.iter_mut().zip(rank.times.0) {
            *total += part;
        }
    }
    let mut phases = seconds(&sum);
    if let Value::Object(map) = &mut phases {
        map.insert("wall".to_owned(), json!(outcome.seconds));
        map.insert("fock_builds_wall".to_owned(), json!(outcome.build_seconds));
    }
    let size = outcome.dipole.map(|[x, y, z]| (x * x + y * y + z * z).sqrt());
    json!({
        "program": "scf",
        "molecule": problem.molecule.formula(),
        "charge": problem.molecule.charge,
        "basis": problem.basis.name,
        "functions": problem.functions.to_string().to_lowercase(),
        "energy": outcome.energy,
        "converged": outcome.converged,
        "iterations": outcome.iterations.len(),
        "nuclear_repulsion": problem.molecule.nuclear_repulsion(),
        "orbital_energies": outcome.converged.then_some(&outcome.orbital_energies),
        "occupied": problem.molecule.occupied().unwrap_or_default(),
        "dipole": outcome.dipole,
        "dipole_debye": size.map(|size| size * DEBYE),
        "ranks": outcome.ranks.len(),
        "nodes": outcome.nodes,
        "progress": progress,
        "protocol": protocol,
        "screening": settings.screening,
        "convergence": settings.convergence,
        "seconds": phases,
        "efficiency": outcome.efficiency(),
        "load_imbalance": outcome.imbalance() - 1.0,
        "communication_share": outcome.communication(),
        "served_by_thread": outcome.ranks.iter().map(|r| r.served_by_thread).sum::<u64>(),
        "served_by_main": outcome.ranks.iter().map(|r| r.served_by_main).sum::<u64>(),
        "table": table,
        "by_rank": ranks,
    })
}

/// What there is to say of a calculation that failed.
pub fn failure(error: &ScfError) -> Value {
    json!({ "program": "scf", "converged": false, "error": error.to_string() })
}

/// Seconds of all phases by name.
fn seconds(times: &Times) -> Value {
    PHASES
        .iter()
        .map(|&phase| (phase.name().to_owned(), json!(times.of(phase))))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
