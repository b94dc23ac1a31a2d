//! Where the slots of other nodes lie, as addresses of the processes there.
//!
//! C names a place by its owner's address. What a node reserved is told once, when ranks join: two words a node. From
//! these, and since symmetric regions lie at one offset behind the beginning of every heap, the address of any rank's part
//! is computed, and an address turned into a place, without asking. Nothing is reached at such an address: it is not
//! mapped here, or as something else.

use bytemuck::{Pod, Zeroable};

use super::{Node, heap_start};
use crate::error::{Error, Result};
use crate::job::Bootstrap;

/// The slots of a node, as its ranks know them.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub(super) struct Slots {
    /// Where the first begins.
    base: u64,
    /// Bytes of each.
    len: u64,
}

/// The slot of a rank of another node, as that rank knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FarSlot {
    base: u64,
    len: u64,
}

impl FarSlot {
    /// The address there of an offset in it.
    pub(crate) fn address(self, offset: u64) -> *mut u8 {
        std::ptr::without_provenance_mut(self.base.wrapping_add(offset) as usize)
    }

    /// The offset in it that an address there lies at.
    pub(crate) fn offset(self, address: usize) -> Option<u64> {
        let offset = (address as u64).wrapping_sub(self.base);
        // The end may be named, as in C.
        (offset <= self.len).then_some(offset)
    }

    /// Where its symmetric heap begins.
    pub(crate) fn heap_start(self) -> u64 {
        heap_start(self.len)
    }
}

impl Node {
    /// Tells all ranks where this node's slots lie; hears it of the others. Collective over the job, which meets.
    pub(super) fn tell_slots(&self, bootstrap: &mut dyn Bootstrap) -> Result<Vec<Slots>> {
        if self.nodes.len() == 1 {
            bootstrap.meet()?;
            return Ok(Vec::new());
        }
        let mine = Slots { base: self.window.base(), len: self.window.slot_len() };
        let told = bootstrap.all_gather(bytemuck::bytes_of(&mine))?;
        let of_node = |(first, _): &(usize, usize)| {
            bytemuck::try_pod_read_unaligned(&told[*first]).map_err(|_| {
                Error::Job(format!("rank {first} told {} bytes of where its node lies", told[*first].len()))
            })
        };
        self.nodes.iter().map(of_node).collect()
    }

    /// The slot of a rank of another node.
    ///
    /// # Errors
    /// [`Error::Rank`] if it does not exist.
    pub(crate) fn far_slot(&self, rank: usize) -> Result<FarSlot> {
        self.node_of(rank)?;
        let nth = self.nth_node(rank);
        let (first, _) = self.nodes[nth];
        let Some(Slots { base, len }) = self.slots.get(nth).copied() else {
            return Err(Error::Argument(format!("rank {rank} is on the only node of its job")));
        };
        Ok(FarSlot { base: base + (rank - first) as u64 * len, len })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_address_and_its_offset_are_each_others_reverse() {
        let slot = FarSlot { base: 1 << 44, len: 1 << 30 };
        for offset in [0, 1, 4096, (1 << 30) - 1] {
            assert_eq!(slot.offset(slot.address(offset).addr()), Some(offset));
        }
        assert_eq!(slot.offset(slot.address(1 << 30).addr()), Some(1 << 30));
        for outside in [0, (1 << 44) - 1, (1 << 44) + (1 << 30) + 1, usize::MAX] {
            assert_eq!(slot.offset(outside), None, "{outside:#x}");
        }
    }
}
