//! Memory that other ranks reach: the node's window, its ledger, the heap, the regions.
//!
//! ```text
//!  window   | slot of rank 0                 | slot of rank 1                 | ...   one address everywhere
//!           |                                |
//!  slot     | control block | symmetric heap ------>       <------ private heap |
//!                           | part of region 0.1 | part of region 1.1 | free ...
//! ```

pub(crate) mod address_map;
pub(crate) mod books;
pub(crate) mod heap;
pub(crate) mod ledger;
pub(crate) mod place_cache;
pub(crate) mod private;
pub(crate) mod region;
pub(crate) mod region_cache;
pub(crate) mod sharing;
pub(crate) mod together;
pub(crate) mod window;

pub use region::{GlobalPtr, RegionId};
