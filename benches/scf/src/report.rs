//! What a chemist likes to read: the molecule, the basis, the convergence table, the energies,
//! and where the time went. A progress bar while a Fock matrix is built, on a terminal only.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::Cli;
use crate::scf::{DEBYE, Iteration, Observer, Outcome, Problem, Size};
use crate::times::PHASES;

/// Prints as the calculation goes; silent with `--json`.
pub struct Reporter {
    quiet: bool,
    terminal: bool,
    bar: Option<ProgressBar>,
    failed: Option<io::Error>,
}

impl Reporter {
    /// A reporter for this run. `visible` is false on all ranks but the first.
    pub fn new(cli: &Cli, visible: bool) -> Self {
        let terminal = visible && io::stderr().is_terminal();
        Self { quiet: cli.json || !visible, terminal, bar: None, failed: None }
    }

    /// Prints a paragraph, around the progress bar. Once that has failed, nothing more is printed.
    pub fn print(&mut self, text: &str) {
        if self.quiet || self.failed.is_some() {
            return;
        }
        let done = match &self.bar {
            Some(bar) => bar.suspend(|| emit(text)),
            None => emit(text),
        };
        self.failed = done.err();
    }

    /// Takes the progress bar off the screen.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Whether everything could be printed.
    ///
    /// # Errors
    /// The first paragraph that could not says why.
    pub fn close(self) -> io::Result<()> {
        self.failed.map_or(Ok(()), Err)
    }
}

fn progress_bar(tasks: usize) -> ProgressBar {
    let bar = ProgressBar::new(tasks as u64);
    if let Ok(style) = ProgressStyle::with_template("  {msg} [{bar:40}] {pos}/{len} tasks") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Writes to standard output. A reader that went away has seen what it wanted: no error.
///
/// # Errors
/// The text did not arrive.
pub fn emit(text: &str) -> io::Result<()> {
    use std::io::Write as _;
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

/// Writes a line to standard error; if that cannot be done there is nobody to tell.
pub fn complain(what: &dyn std::fmt::Display) {
    use std::io::Write as _;
    let _ = writeln!(io::stderr(), "scf: {what}");
}

/// A number of things: "1 rank", "2 ranks".
pub fn count(n: usize, thing: &str) -> String {
    if n == 1 { format!("1 {thing}") } else { format!("{n} {thing}s") }
}

impl Observer for Reporter {
    fn start(&mut self, size: &Size) {
        self.print(&describe_size(size));
        self.print("\n  iteration        energy / Eh          change    residual    quartets   seconds\n");
    }

    fn task(&mut self, iteration: usize, done: usize, all: usize) {
        if !self.terminal {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| progress_bar(all));
        bar.set_message(format!("iteration {iteration}"));
        bar.set_position(done as u64);
    }

    fn iteration(&mut self, line: &Iteration) {
        let change = if line.step.change.is_nan() { String::new() } else { format!("{:.3e}", line.step.change) };
        self.print(&format!(
            "  {:>9}  {:>18.10}  {change:>14}  {:>10.2e}  {:>10}  {:>8.3}\n",
            line.number, line.step.energy, line.step.residual, line.quartets, line.seconds
        ));
    }
}

/// The head of the report.
pub fn describe_problem(problem: &Problem, ranks: usize, nodes: usize, runtime: &str) -> String {
    let molecule = &problem.molecule;
    let mut out = String::new();
    let (ranks, nodes) = (count(ranks, "rank"), count(nodes, "node"));
    let _ = writeln!(out, "scf: closed-shell Hartree-Fock, {ranks} on {nodes} ({runtime})\n");
    let _ = writeln!(out, "  molecule   {} (charge {})", molecule.formula(), molecule.charge);
    if !molecule.comment.is_empty() {
        let _ = writeln!(out, "             {}", molecule.comment);
    }
    let _ = writeln!(out, "\n                   x             y             z      angstrom");
    for (number, atom) in molecule.atoms.iter().enumerate() {
        let [x, y, z] = atom.angstrom();
        let _ = writeln!(out, "  {:>4} {:<2} {x:>13.6} {y:>13.6} {z:>13.6}", number + 1, atom.element.symbol());
    }
    let _ = writeln!(out, "\n  basis      {} ({} functions)", problem.basis.name, problem.functions);
    out
}

fn describe_size(size: &Size) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "             {} shells, {} functions", size.shells, size.functions);
    let _ = writeln!(out, "             smallest eigenvalue of the overlap {:.2e}", size.smallest);
    if size.independent < size.functions {
        let gone = size.functions - size.independent;
        let _ = writeln!(out, "             {gone} nearly dependent combinations left out");
    }
    let _ = writeln!(out, "  electrons  {} in {} orbitals", 2 * size.occupied, size.occupied);
    let _ = writeln!(out, "  nuclei     repulsion {:.10} Eh", size.repulsion);
    let _ = writeln!(out, "  work       {} tasks from {} blocks", size.tasks, size.blocks);
    out
}

/// The results: energy, orbitals, dipole moment.
pub fn describe_result(problem: &Problem, outcome: &Outcome) -> String {
    let mut out = String::new();
    if outcome.converged {
        let _ = writeln!(out, "\n  converged in {}", count(outcome.iterations.len(), "iteration"));
    } else {
        let _ = writeln!(out, "\n  NOT CONVERGED in {}", count(outcome.iterations.len(), "iteration"));
    }
    let _ = match outcome.energy {
        Some(energy) if outcome.converged => writeln!(out, "\n  total energy  {energy:>20.12} Eh"),
        Some(energy) => writeln!(out, "\n  best energy   {energy:>20.12} Eh   (smallest residual; not a result)"),
        None => {
            writeln!(out, "\n  no energy yet: the first Fock matrix is built from superposed atoms, not from orbitals")
        }
    };
    let Some(dipole) = outcome.dipole else { return out };
    let occupied = problem.molecule.occupied().unwrap_or_default();
    let list = |energies: &[f64]| {
        energies.chunks(6).map(|row| row.iter().map(|e| format!("{e:>12.6}")).collect::<String>()).collect::<Vec<_>>()
    };
    let (filled, empty) = outcome.orbital_energies.split_at(occupied.min(outcome.orbital_energies.len()));
    let _ = writeln!(out, "\n  orbital energies / Eh");
    for (name, energies) in [("occupied", filled), ("virtual", empty)] {
        for (index, row) in list(energies).into_iter().enumerate() {
            let _ = writeln!(out, "    {:<9}{row}", if index == 0 { name } else { "" });
        }
    }
    if let (Some(homo), Some(lumo)) = (filled.last(), empty.first()) {
        let _ = writeln!(out, "    HOMO-LUMO gap {:.6} Eh", lumo - homo);
    }
    // Rounded, and zero without a sign.
    let [x, y, z] = dipole.map(|x| (x * 1e6).round() / 1e6 + 0.0);
    let size = dipole.iter().map(|x| x * x).sum::<f64>().sqrt();
    let _ = writeln!(out, "\n  dipole moment  {x:.6}  {y:.6}  {z:.6}  a.u.");
    let _ = writeln!(out, "                 {size:.6} a.u. = {:.4} debye", size * DEBYE);
    if problem.molecule.charge != 0 {
        let _ = writeln!(out, "                 about the centre of nuclear charge: an ion's depends on the origin");
    }
    out
}

/// Where the time went.
pub fn describe_times(outcome: &Outcome) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "\n  seconds by rank");
    let _ = write!(out, "    {:>4}", "rank");
    for phase in PHASES {
        let _ = write!(out, " {:>11}", phase.name());
    }
    let _ = writeln!(out, " {:>9} {:>7} {:>10}", "total", "tasks", "quartets");
    for (number, rank) in outcome.ranks.iter().enumerate() {
        let _ = write!(out, "    {number:>4}");
        for phase in PHASES {
            let _ = write!(out, " {:>11.4}", rank.times.of(phase));
        }
        let _ = writeln!(out, " {:>9.4} {:>7} {:>10}", rank.times.total(), rank.tasks, rank.quartets);
    }
    let _ =
        writeln!(out, "\n  Fock builds                  {:>9.3} s of {:.3} s", outcome.build_seconds, outcome.seconds);
    for (name, share) in [
        ("integrals in Fock builds", outcome.efficiency()),
        ("load imbalance", outcome.imbalance() - 1.0),
        ("counter + get + accumulate", outcome.communication()),
    ] {
        let _ = writeln!(out, "  {name:<28} {:>9.2} %", 100.0 * share);
    }
    let thread: u64 = outcome.ranks.iter().map(|r| r.served_by_thread).sum();
    let main: u64 = outcome.ranks.iter().map(|r| r.served_by_main).sum();
    let _ = if thread + main == 0 {
        writeln!(out, "  no request had to be served: everything went by remote memory access")
    } else {
        writeln!(out, "  requests served: {thread} by progress threads, {main} by the ranks themselves")
    };
    out
}
