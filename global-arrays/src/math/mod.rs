//! Mathematics on whole arrays and patches: what all ranks of an array do together, each on what it owns.
//!
//! Every operation is collective over the group of the array it changes (or, where it changes none, of its first), and
//! begins and ends with that group's ranks meeting, the writes of all of them completed. It is had for whole arrays, as a
//! method of [`GlobalArray`](crate::GlobalArray), and for patches, of [`GlobalSlice`](crate::GlobalSlice); operands are
//! either ([`Operand`]), of whatever distribution. What of them lies in one block on this node is read in place; the rest is
//! fetched, in pieces that a cache holds. So an operand of another group must be at rest: only the group of what is changed is
//! synchronised. Ghost cells are neither read nor written.
//!
//! What one rank could not do is an error on all: its own on that rank, [`Error::Elsewhere`](crate::Error::Elsewhere) on the
//! others. What was changed may be half changed then.
//!
//! | Global Arrays | here |
//! |---|---|
//! | `GA_Zero`, `NGA_Zero_patch` | `zero` |
//! | `GA_Fill`, `NGA_Fill_patch` | `fill` |
//! | `GA_Copy`, `NGA_Copy_patch` | `copy_from`, `copy_to`; `reshape_from` for other shapes; `transpose_from` for `'T'` |
//! | `GA_Scale`, `NGA_Scale_patch` | `scale` |
//! | `GA_Add`, `NGA_Add_patch` | `add` |
//! | `GA_Add_constant`, `GA_Add_constant_patch` | `add_constant` |
//! | `GA_Abs_value`, `GA_Recip`, and `_patch` | `abs_value`, `reciprocal` |
//! | `GA_Elem_multiply`, `_divide`, `_maximum`, `_minimum`, and `_patch` | `multiply`, `divide`, `maximum`, `minimum` |
//! | anything else, element by element | `apply`, `assign_from`, `combine` |
//! | `GA_Idot`, `GA_Ddot`, `GA_Zdot`, ..., `NGA_Ddot_patch`, ... | `dot`, `conjugate_dot` |
//! | `GA_Norm1`, `GA_Norm_infinity` | `norm1`, `norm_infinity`; `norm_frobenius`, `norm_max` |
//! | `NGA_Select_elem` | `select_min`, `select_max` |
//! | `GA_Transpose` | `transpose_from`; `permute_from` for more axes |
//! | `GA_Symmetrize` | `symmetrize` |
//! | `GA_Zero_diagonal`, `GA_Set_diagonal`, `GA_Get_diag` | `zero_diagonal`, `set_diagonal`, `get_diagonal` |
//! | `GA_Add_diagonal`, `GA_Shift_diagonal` | `add_diagonal`, `shift_diagonal` |
//! | `GA_Scale_rows`, `GA_Scale_cols` | `scale_rows`, `scale_cols`; `scale_along` for more axes |
//! | `GA_Scan_add`, `GA_Scan_copy` | `scan_add`, `scan_copy` |
//! | `GA_Pack`, `GA_Unpack` | `pack`, `unpack` |
//! | `GA_Patch_enum` | `enumerate` |

mod combine;
mod copy;
mod diagonal;
mod element;
mod elementwise;
mod fill;
mod inplace;
mod operand;
mod reduce;
mod scan;
mod symmetrize;
mod tiles;
mod whole;

pub use element::Element;
pub use operand::Operand;
pub use scan::Scan;
