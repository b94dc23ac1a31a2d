//! The work of a Fock build, cut into tasks.
//!
//! The functions are grouped into *blocks* of whole shells. A task is a pair of blocks (I, J)
//! with J <= I on the bra side and one block K <= I on the ket side, to be combined with every
//! L that makes (K, L) a pair not after (I, J): L <= K, or L <= J if K = I. All tasks together
//! hold every unordered pair of block pairs exactly once.
//!
//! A task touches the density and the Fock matrix in three horizontal stripes only:
//!
//! ```text
//!   rows I, columns 0..max(J,K)     D_IJ  D_IK  D_IL
//!   rows J, columns 0..K            D_JK  D_JL
//!   rows K, columns 0..L            D_KL
//! ```
//!
//! so it costs three gets and three accumulates, against a thousand and more shell quartets.
//! Tasks are sorted by estimated cost, large first: the small ones at the end fill the gaps.

use std::ops::Range;

use crate::pairs::{Pairs, triangle};
use crate::shells::Orbitals;

/// A run of whole shells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Its shells.
    pub shells: Range<usize>,
    /// Its functions.
    pub functions: Range<usize>,
}

/// Bra blocks I and J, ket block K; see the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// First bra block.
    pub i: usize,
    /// Second bra block, not after the first.
    pub j: usize,
    /// First ket block, not after the first bra block.
    pub k: usize,
}

impl Task {
    /// The second ket blocks.
    pub fn l(&self) -> Range<usize> {
        0..if self.k == self.i { self.j + 1 } else { self.k + 1 }
    }

    /// Row blocks and end column blocks (inclusive) of the three stripes.
    pub fn stripes(&self) -> [(usize, usize); 3] {
        let last = self.l().end - 1;
        [(self.i, self.j.max(self.k)), (self.j, self.k), (self.k, last)]
    }
}

/// Blocks, the pairs within each pair of blocks, and the tasks.
#[derive(Debug)]
pub struct Plan {
    /// Blocks in the order of their functions.
    pub blocks: Vec<Block>,
    /// For each pair of blocks (in the order of the triangle) the numbers of its significant
    /// shell pairs, largest Schwarz bound first.
    pub members: Vec<Vec<u32>>,
    /// Tasks, most expensive first.
    pub tasks: Vec<Task>,
}

/// The block width used when the user does not choose: about eight blocks in a small molecule,
/// so that there are enough tasks, and up to twelve functions in a large one.
pub fn default_width(functions: usize) -> usize {
    (functions / 8).clamp(3, 12)
}

/// Groups shells into blocks of at most `width` functions (a wider shell is a block of its own).
pub fn blocks(orbitals: &Orbitals, width: usize) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for (index, shell) in orbitals.shells.iter().enumerate() {
        match blocks.last_mut() {
            Some(block) if shell.functions.end - block.functions.start <= width => {
                block.shells.end = index + 1;
                block.functions.end = shell.functions.end;
            }
            _ => blocks.push(Block { shells: index..index + 1, functions: shell.functions.clone() }),
        }
    }
    blocks
}

impl Plan {
    /// Cuts the work into tasks. Costs are estimated with quartets above `threshold` only.
    pub fn new(pairs: &Pairs<'_>, width: usize, threshold: f64) -> Self {
        let blocks = blocks(pairs.orbitals, width);
        let members = members(pairs, &blocks);
        let profiles: Vec<Profile> = members.iter().map(|list| Profile::new(pairs, list)).collect();
        let mut tasks = Vec::new();
        for i in 0..blocks.len() {
            for j in 0..=i {
                for k in 0..=i {
                    let task = Task { i, j, k };
                    let bra = &members[triangle(i, j)];
                    let mut cost = 0.0;
                    for l in task.l() {
                        let ket = &profiles[triangle(k, l)];
                        cost += bra.iter().map(|&p| ket.partners(pairs, p, threshold)).sum::<f64>();
                    }
                    if cost > 0.0 {
                        tasks.push((cost, task));
                    }
                }
            }
        }
        tasks.sort_by(|a, b| b.0.total_cmp(&a.0));
        Self { blocks, members, tasks: tasks.into_iter().map(|(_, task)| task).collect() }
    }
}

fn members(pairs: &Pairs<'_>, blocks: &[Block]) -> Vec<Vec<u32>> {
    let mut home = vec![0; pairs.orbitals.shells.len()];
    for (index, block) in blocks.iter().enumerate() {
        home[block.shells.clone()].fill(index);
    }
    let mut members = vec![Vec::new(); triangle(blocks.len(), 0)];
    for (number, pair) in pairs.list.iter().enumerate() {
        members[triangle(home[pair.first], home[pair.second])].push(number as u32);
    }
    for list in &mut members {
        list.sort_by(|&a, &b| pairs.list[b as usize].bound.total_cmp(&pairs.list[a as usize].bound));
    }
    members
}

/// Schwarz bounds of a block pair's shell pairs, falling, with the running sum of their costs.
struct Profile(Vec<(f64, f64)>);

impl Profile {
    fn new(pairs: &Pairs<'_>, list: &[u32]) -> Self {
        let mut sum = 0.0;
        let running = list.iter().map(|&p| {
            sum += cost(pairs, p);
            (pairs.list[p as usize].bound, sum)
        });
        Self(running.collect())
    }

    /// Estimated cost of bra pair `p` with all partners in this profile above the threshold.
    fn partners(&self, pairs: &Pairs<'_>, p: u32, threshold: f64) -> f64 {
        let bound = pairs.list[p as usize].bound;
        let count = self.0.partition_point(|entry| entry.0 * bound > threshold);
        if count == 0 { 0.0 } else { cost(pairs, p) * self.0[count - 1].1 }
    }
}

/// A pair's share in the cost of its quartets: primitive products times the size of the
/// recurrence, plus the size of the block that comes out.
fn cost(pairs: &Pairs<'_>, p: u32) -> f64 {
    let pair = &pairs.list[p as usize];
    let [a, b] = pairs.shells(pair);
    let ladder = a.l + b.l + 1;
    pair.products.len() as f64 * (ladder * ladder) as f64 + 3.0 * (a.functions.len() * b.functions.len()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_hold_every_pair_of_block_pairs_once() {
        let n = 6;
        let mut seen = std::collections::HashSet::new();
        for i in 0..n {
            for j in 0..=i {
                for k in 0..=i {
                    let task = Task { i, j, k };
                    for l in task.l() {
                        let (bra, ket) = (triangle(i, j), triangle(k, l));
                        assert!(ket <= bra && l <= k);
                        assert!(seen.insert((bra, ket)));
                        let [(_, first), (_, second), (_, third)] = task.stripes();
                        assert!(j <= first && k <= first && l <= first && k <= second && l <= second && l <= third);
                    }
                }
            }
        }
        let pairs = triangle(n, 0);
        assert_eq!(seen.len(), pairs * (pairs + 1) / 2);
    }
}
