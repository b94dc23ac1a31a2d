//! The numeric heart of a task: integrals of its shell quartets, contracted with three stripes
//! of the density into three stripes of the Fock matrix. It knows nothing of ranks.
//!
//! For each unique quartet (ij|kl), with s = 1/2 for every coincidence i=j, k=l, ij=kl,
//!
//! ```text
//!   F_ij += 4 s (ij|kl) D_kl      F_ik -= s (ij|kl) D_jl      F_jk -= s (ij|kl) D_il
//!   F_kl += 4 s (ij|kl) D_ij      F_il -= s (ij|kl) D_jk      F_jl -= s (ij|kl) D_ik
//! ```
//!
//! and at the very end G = (F + F^T)/2 is the two-electron part of the closed-shell Fock matrix
//! of the density D (both spins).
//!
//! A quartet is skipped when the Schwarz bound of its integrals times the largest density it
//! could meet (Coulomb terms count four times) stays below the threshold.

use ndarray::Array2;

use crate::eri::Evaluator;
use crate::pairs::{Pair, Pairs, triangle};
use crate::tasks::{Plan, Task};

/// Three stripes of a matrix, rows I, J, K of a task; see [`Task::stripes`].
pub type Stripes = [Array2<f64>; 3];

/// Evaluates tasks; one per rank, reused from task to task.
pub struct Contractor<'a> {
    pairs: &'a Pairs<'a>,
    plan: &'a Plan,
    evaluator: Evaluator<'a>,
    pending: Pending,
}

/// Quartets waiting for three of their class, by bra class and ket class.
struct Pending {
    classes: usize,
    lists: Vec<([(u32, u32); 4], usize)>,
}

/// Where a task's blocks begin, in functions and in shells.
#[derive(Clone, Copy)]
struct Origin {
    functions: [usize; 3],
    shells: [usize; 3],
}

impl<'a> Contractor<'a> {
    /// A contractor for the tasks of a plan.
    pub fn new(pairs: &'a Pairs<'a>, plan: &'a Plan) -> Self {
        let lists = vec![([(0, 0); 4], 0); pairs.classes * pairs.classes];
        let pending = Pending { classes: pairs.classes, lists };
        Self { pairs, plan, evaluator: Evaluator::new(pairs.orbitals), pending }
    }

    /// Does one task: reads the density's stripes, adds to the Fock matrix's (same shapes),
    /// and returns the number of quartets evaluated.
    pub fn run(&mut self, task: Task, density: &Stripes, fock: &mut Stripes, threshold: f64) -> u64 {
        let blocks = [task.i, task.j, task.k].map(|b| &self.plan.blocks[b]);
        let origin = Origin { functions: blocks.map(|b| b.functions.start), shells: blocks.map(|b| b.shells.start) };
        let bounds = Bounds::new(self.pairs, density, origin);
        let (pairs, plan) = (self.pairs, self.plan);
        let bra_number = triangle(task.i, task.j);
        let mut count = 0;
        for l in task.l() {
            let ket_number = triangle(task.k, l);
            let same = bra_number == ket_number;
            for &b in &plan.members[bra_number] {
                let bra = &pairs.list[b as usize];
                for &k in &plan.members[ket_number] {
                    let ket = &pairs.list[k as usize];
                    let schwarz = bra.bound * ket.bound;
                    if schwarz * bounds.largest < threshold {
                        break;
                    }
                    if (same && k > b) || schwarz * bounds.quartet(bra, ket) < threshold {
                        continue;
                    }
                    count += 1;
                    if !pairs.batched[bra.class * pairs.classes + ket.class] {
                        digest(pairs, origin, bra, ket, self.evaluator.one(bra, ket, false), density, fock);
                    } else if let Some(four) = self.pending.push(bra.class, ket.class, (b, k)) {
                        let quartets = four.map(|(b, k)| (&pairs.list[b as usize], &pairs.list[k as usize]));
                        self.evaluator.four(quartets, |lane, block| {
                            let (bra, ket) = quartets[lane];
                            digest(pairs, origin, bra, ket, block, density, fock);
                        });
                    }
                }
            }
        }
        for (four, waiting) in &mut self.pending.lists {
            let waiting = std::mem::take(waiting);
            if waiting == 1 {
                let (bra, ket) = (&pairs.list[four[0].0 as usize], &pairs.list[four[0].1 as usize]);
                digest(pairs, origin, bra, ket, self.evaluator.one(bra, ket, true), density, fock);
            } else if waiting > 1 {
                // Four together cost less than two apart: fill up with copies of the first.
                let first = four[0];
                four[waiting..].fill(first);
                let quartets = four.map(|(b, k)| (&pairs.list[b as usize], &pairs.list[k as usize]));
                self.evaluator.four(quartets, |lane, block| {
                    let (bra, ket) = quartets[lane];
                    if lane < waiting {
                        digest(pairs, origin, bra, ket, block, density, fock);
                    }
                });
            }
        }
        count
    }
}

impl Pending {
    /// Adds a quartet; gives back four when there are four.
    fn push(&mut self, bra: usize, ket: usize, quartet: (u32, u32)) -> Option<[(u32, u32); 4]> {
        let (four, waiting) = &mut self.lists[bra * self.classes + ket];
        four[*waiting] = quartet;
        *waiting += 1;
        (*waiting == 4).then(|| {
            *waiting = 0;
            *four
        })
    }
}

/// The largest density element in each block of shells, for the stripes of a task.
struct Bounds {
    stripes: [Array2<f64>; 3],
    first: [usize; 3],
    /// The largest factor any quartet of the task can meet.
    largest: f64,
}

impl Bounds {
    fn new(pairs: &Pairs<'_>, density: &Stripes, origin: Origin) -> Self {
        let shells = &pairs.orbitals.shells;
        let stripes = [0, 1, 2].map(|row| {
            let matrix = &density[row];
            let rows = &shells[origin.shells[row]..];
            let rows = rows.iter().take_while(|s| s.functions.end - origin.functions[row] <= matrix.nrows()).count();
            let columns = shells.partition_point(|s| s.functions.end <= matrix.ncols());
            Array2::from_shape_fn((rows, columns), |(r, c)| {
                let shell = &shells[origin.shells[row] + r];
                let first = shell.functions.start - origin.functions[row];
                let columns = shells[c].functions.clone();
                (first..first + shell.functions.len())
                    .flat_map(|r| columns.clone().map(move |c| (r, c)))
                    .map(|at| matrix[at].abs())
                    .fold(0.0, f64::max)
            })
        });
        let largest = stripes.iter().flatten().copied().fold(0.0, f64::max);
        Self { stripes, first: origin.shells, largest: 4.0 * largest }
    }

    /// The largest factor a quartet's integrals are multiplied with.
    fn quartet(&self, bra: &Pair, ket: &Pair) -> f64 {
        let [rows_i, rows_j, rows_k] = &self.stripes;
        let (i, j, k) = (bra.first - self.first[0], bra.second - self.first[1], ket.first - self.first[2]);
        let coulomb = rows_i[[i, bra.second]].max(rows_k[[k, ket.second]]);
        let first = rows_i[[i, ket.first]].max(rows_i[[i, ket.second]]);
        let second = rows_j[[j, ket.first]].max(rows_j[[j, ket.second]]);
        (4.0 * coulomb).max(first).max(second)
    }
}

/// Contracts one block of integrals; see the module's text.
fn digest(
    pairs: &Pairs<'_>,
    origin: Origin,
    bra: &Pair,
    ket: &Pair,
    block: &[f64],
    density: &Stripes,
    fock: &mut Stripes,
) {
    let half = |same: bool| if same { 0.5 } else { 1.0 };
    let same_pair = bra.first == ket.first && bra.second == ket.second;
    let weight = half(bra.first == bra.second) * half(ket.first == ket.second) * half(same_pair);
    let [a, b] = pairs.shells(bra);
    let [c, d] = pairs.shells(ket);
    let place = Place {
        rows: [
            a.functions.start - origin.functions[0],
            b.functions.start - origin.functions[1],
            c.functions.start - origin.functions[2],
        ],
        columns: [b.functions.start, c.functions.start, d.functions.start],
        widths: [a.functions.len(), b.functions.len(), c.functions.len()],
        weight,
    };
    match d.functions.len() {
        1 => place.digest::<1>(block, density, fock),
        3 => place.digest::<3>(block, density, fock),
        5 => place.digest::<5>(block, density, fock),
        6 => place.digest::<6>(block, density, fock),
        7 => place.digest::<7>(block, density, fock),
        _ => place.digest::<10>(block, density, fock),
    }
}

/// Where a quartet's functions lie in the stripes.
struct Place {
    /// Rows of its first, second, third shell in stripes I, J, K.
    rows: [usize; 3],
    /// Columns of its second, third, fourth shell.
    columns: [usize; 3],
    /// Functions in its first, second, third shell.
    widths: [usize; 3],
    weight: f64,
}

impl Place {
    /// The contraction with `D` functions in the fourth shell.
    fn digest<const D: usize>(&self, block: &[f64], density: &Stripes, fock: &mut Stripes) {
        let [na, nb, nc] = self.widths;
        let [column_b, column_c, column_d] = self.columns;
        let widths = [0, 1, 2].map(|s| density[s].ncols());
        let [di, dj, dk] = density.each_ref().map(|m| m.as_slice().expect("stripes are contiguous"));
        let [fi, fj, fk] = fock.each_mut().map(|m| m.as_slice_mut().expect("stripes are contiguous"));
        let mut integrals = block.chunks_exact(D);
        for a in 0..na {
            let row_a = (self.rows[0] + a) * widths[0];
            let di = &di[row_a..row_a + widths[0]];
            let fi = &mut fi[row_a..row_a + widths[0]];
            for b in 0..nb {
                let row_b = (self.rows[1] + b) * widths[1];
                let dj = &dj[row_b..row_b + widths[1]];
                let fj = &mut fj[row_b..row_b + widths[1]];
                let coulomb = 4.0 * self.weight * di[column_b + b];
                let mut sum_ab = 0.0;
                for (c, integrals) in integrals.by_ref().take(nc).enumerate() {
                    let row_c = (self.rows[2] + c) * widths[2] + column_d;
                    let exchange_ac = self.weight * di[column_c + c];
                    let exchange_bc = self.weight * dj[column_c + c];
                    let g: &[f64; D] = integrals.try_into().expect("chunks have D entries");
                    let d_c = &dk[row_c..row_c + D];
                    let d_a = &di[column_d..column_d + D];
                    let d_b = &dj[column_d..column_d + D];
                    let f_c = &mut fk[row_c..row_c + D];
                    let (mut sum_ac, mut sum_bc) = (0.0, 0.0);
                    for d in 0..D {
                        sum_ab += g[d] * d_c[d];
                        sum_ac += g[d] * d_b[d];
                        sum_bc += g[d] * d_a[d];
                        f_c[d] += coulomb * g[d];
                    }
                    let f_a = &mut fi[column_d..column_d + D];
                    let f_b = &mut fj[column_d..column_d + D];
                    for d in 0..D {
                        f_a[d] -= exchange_bc * g[d];
                        f_b[d] -= exchange_ac * g[d];
                    }
                    fi[column_c + c] -= self.weight * sum_ac;
                    fj[column_c + c] -= self.weight * sum_bc;
                }
                fi[column_b + b] += 4.0 * self.weight * sum_ab;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basis::{self, BasisSet, Functions};
    use crate::guess;
    use crate::molecule::Molecule;
    use crate::schwarz::schwarz_part;
    use crate::shells::Orbitals;
    use ndarray::s;

    /// All tasks in turn, as if there were one rank.
    fn by_tasks(orbitals: &Orbitals, density: &Array2<f64>, width: usize, threshold: f64) -> Array2<f64> {
        let pairs = Pairs::new(orbitals, &schwarz_part(orbitals, 0, 1), 0.0);
        let plan = Plan::new(&pairs, width, 0.0);
        let mut contractor = Contractor::new(&pairs, &plan);
        let mut fock = Array2::<f64>::zeros(density.dim());
        for &task in &plan.tasks {
            let patches =
                task.stripes().map(|(row, last)| (plan.blocks[row].functions.clone(), plan.blocks[last].functions.end));
            let input = patches.clone().map(|(rows, end)| density.slice(s![rows, ..end]).to_owned());
            let mut output = input.each_ref().map(|m| Array2::zeros(m.dim()));
            contractor.run(task, &input, &mut output, threshold);
            for ((rows, end), part) in patches.into_iter().zip(output) {
                fock.slice_mut(s![rows, ..end]).scaled_add(1.0, &part);
            }
        }
        (&fock + &fock.t()) * 0.5
    }

    #[test]
    fn tasks_of_any_width_add_up_to_the_plain_sum() {
        let molecule = Molecule::from_xyz("m", include_str!("../molecules/h2o.xyz"), 0).unwrap();
        for (name, functions) in [("6-31g**", Functions::Cartesian), ("cc-pvdz", Functions::Spherical)] {
            let set = BasisSet::parse(&basis::find(name).unwrap()).unwrap();
            let orbitals = Orbitals::new(&molecule, &set, functions).unwrap();
            let n = orbitals.len();
            let density = Array2::from_shape_fn((n, n), |(i, j)| ((i * j) as f64).sin() + 0.1 * (i + j) as f64);
            let plain = guess::two_electron(&guess::dense(&orbitals), &density);
            for width in [1, 4, 7, 100] {
                let found = by_tasks(&orbitals, &density, width, 0.0);
                let worst = (&found - &plain).iter().fold(0.0, |m: f64, d| m.max(d.abs()));
                assert!(worst < 1e-10, "{name}, width {width}: {worst:e}");
            }
            let screened = by_tasks(&orbitals, &density, 6, 1e-8);
            let worst = (&screened - &plain).iter().fold(0.0, |m: f64, d| m.max(d.abs()));
            assert!(worst < 1e-6, "{name} screened: {worst:e}");
        }
    }
}
