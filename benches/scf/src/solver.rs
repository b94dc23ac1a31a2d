//! The self-consistent field on rank 0: energy, residual, convergence, and the next density.
//!
//! The two-electron part is linear in the density, so what earlier builds gave need not be
//! built again: a new density is split into its best approximation by the densities built so
//! far (least squares, which makes the rest orthogonal to all of them) and that small rest. Only
//! the rest is built; screening then leaves out more and more of the integrals.
//!
//! While the residual is large the Fock matrix need not be exact: screening is coarse at first.
//! When the residual has become [`COARSE_UNTIL`], everything built so far is forgotten, the whole
//! density is built once with the user's threshold, and the errors made before are gone.
//! (H2O)6, 6-31G*: a quarter less work in all.

use ndarray::{Array1, Array2, s};

use crate::diis::Diis;
use crate::error::{Result, ScfError};
use crate::linalg::Orthogonal;
use crate::one_electron::OneElectron;

/// Screening threshold of the coarse stage.
const COARSE: f64 = 1e-7;

/// Residual at which the coarse stage ends.
pub const COARSE_UNTIL: f64 = 1e-3;

/// When the calculation is finished.
#[derive(Debug, Clone, Copy)]
pub struct Criteria {
    /// Largest element of the residual FDS - SDF (in an orthonormal basis) at convergence.
    pub residual: f64,
}

impl Criteria {
    /// The energy change that must not be exceeded as well.
    fn energy(&self) -> f64 {
        self.residual * 1e-2
    }
}

/// What one iteration found.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// Total energy of the density that was built from.
    pub energy: f64,
    /// Its change since the iteration before.
    pub change: f64,
    /// Largest element of the residual.
    pub residual: f64,
    /// Whether both are small enough.
    pub converged: bool,
    /// Whether the density comes from orbitals: only then is the energy an upper bound. Superposed
    /// atoms are no determinant.
    pub variational: bool,
}

/// The state of the iteration.
pub struct Solver {
    matrices: OneElectron,
    repulsion: f64,
    occupied: usize,
    criteria: Criteria,
    orthogonal: Orthogonal,
    diis: Diis,
    density: Array2<f64>,
    /// Densities built so far, mutually orthogonal, each with its two-electron part.
    built: Vec<(Array2<f64>, Array2<f64>)>,
    /// The density being built, and the two-electron part of what it leaves out.
    building: (Array2<f64>, Array2<f64>),
    /// Whether screening is still coarse.
    coarse: bool,
    energy: Option<f64>,
    /// Densities from orbitals, not from a guess.
    from_orbitals: bool,
    orbital_energies: Array1<f64>,
    orbitals: Array2<f64>,
}

impl Solver {
    /// Starts from a density.
    ///
    /// # Errors
    /// There are fewer independent functions than occupied orbitals.
    pub fn new(
        matrices: OneElectron,
        repulsion: f64,
        occupied: usize,
        start: Option<Array2<f64>>,
        criteria: Criteria,
        dependence: f64,
        basis: &str,
    ) -> Result<Self> {
        let orthogonal = Orthogonal::new(&matrices.overlap, dependence);
        let functions = orthogonal.vectors.ncols();
        if functions < occupied {
            return Err(ScfError::BasisTooSmall { orbitals: occupied, functions, basis: basis.to_owned() });
        }
        let zero = Array2::zeros(matrices.overlap.dim());
        let from_orbitals = start.is_none();
        let mut solver = Self {
            repulsion,
            occupied,
            criteria,
            orthogonal,
            diis: Diis::default(),
            density: zero.clone(),
            built: Vec::new(),
            building: (zero.clone(), zero),
            coarse: true,
            energy: None,
            from_orbitals,
            orbital_energies: Array1::zeros(0),
            orbitals: Array2::zeros((0, 0)),
            matrices,
        };
        match start {
            Some(density) => solver.density = density,
            None => solver.fill(&solver.matrices.core.clone()),
        }
        Ok(solver)
    }

    /// The density to build the next Fock matrix from, the part of the current one that earlier
    /// builds do not cover, and the screening threshold to use. With `whole` nothing is reused
    /// and `threshold` always holds.
    pub fn increment(&mut self, whole: bool, threshold: f64) -> (&Array2<f64>, f64) {
        if whole {
            self.built.clear();
            self.coarse = false;
        }
        let mut rest = self.density.clone();
        let mut known = Array2::zeros(rest.dim());
        for (density, two_electron) in &self.built {
            let norm = (density * density).sum();
            if norm > f64::MIN_POSITIVE {
                let share = (&rest * density).sum() / norm;
                rest.scaled_add(-share, density);
                known.scaled_add(share, two_electron);
            }
        }
        self.building = (rest, known);
        (&self.building.0, if self.coarse { threshold.max(COARSE) } else { threshold })
    }

    /// Takes in the two-electron part for the last increment; finds the energy and, unless
    /// converged, the next density.
    ///
    /// # Errors
    /// The energy is not a finite number.
    pub fn step(&mut self, two_electron: Array2<f64>, iteration: usize) -> Result<Step> {
        let (rest, known) = std::mem::take(&mut self.building);
        let fock = &self.matrices.core + &known + &two_electron;
        self.built.push((rest, two_electron));
        let energy = 0.5 * (&self.density * &(&self.matrices.core + &fock)).sum() + self.repulsion;
        if !energy.is_finite() {
            return Err(ScfError::NotFinite { iteration, energy });
        }
        let x = &self.orthogonal.vectors;
        let product = x.t().dot(&fock.dot(&self.density).dot(&self.matrices.overlap)).dot(x);
        let commutator = &product - &product.t();
        let residual = commutator.iter().fold(0.0, |m: f64, r| m.max(r.abs()));
        let change = self.energy.map_or(f64::NAN, |last| energy - last);
        self.energy = Some(energy);
        let variational = self.from_orbitals;
        let converged =
            !self.coarse && variational && residual < self.criteria.residual && change.abs() < self.criteria.energy();
        if converged {
            (self.orbital_energies, self.orbitals) = self.orthogonal.solve(&fock);
        } else {
            // The superposed atoms are no determinant: their residual would mislead the extrapolation.
            let next = if self.from_orbitals { self.diis.extrapolate(fock, commutator) } else { fock };
            self.fill(&next);
            self.from_orbitals = true;
            if self.coarse && residual < COARSE_UNTIL {
                self.coarse = false;
                self.built.clear();
            }
        }
        Ok(Step { energy, change, residual, converged, variational })
    }

    /// Fills the lowest orbitals of a Fock matrix.
    fn fill(&mut self, fock: &Array2<f64>) {
        (self.orbital_energies, self.orbitals) = self.orthogonal.solve(fock);
        let occupied = self.orbitals.slice(s![.., ..self.occupied]);
        self.density = occupied.dot(&occupied.t()) * 2.0;
    }

    /// The density of the last energy if converged, else the one to come next.
    pub fn density(&self) -> &Array2<f64> {
        &self.density
    }

    /// Orbital energies of the last Fock matrix solved.
    pub fn orbital_energies(&self) -> &Array1<f64> {
        &self.orbital_energies
    }

    /// Energy from the highest occupied to the lowest empty orbital, if there is one.
    pub fn gap(&self) -> Option<f64> {
        let lumo = self.orbital_energies.get(self.occupied)?;
        Some(lumo - self.orbital_energies.get(self.occupied.checked_sub(1)?)?)
    }

    /// Linearly independent functions, and the smallest eigenvalue of the overlap.
    pub fn independent(&self) -> (usize, f64) {
        (self.orthogonal.vectors.ncols(), self.orthogonal.smallest)
    }
}
