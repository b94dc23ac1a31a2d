//! Operations said once, for slices, and had for whole arrays too.

/// Defines methods of [`GlobalSlice`](crate::GlobalSlice), and the same ones of [`GlobalArray`](crate::GlobalArray) for all
/// of it.
macro_rules! on_slices_and_arrays {
    (
        <$element:ident: $bound:path, $dim:ty $(where $free:ident: $dimension:path)?>
        $(
            $(#[$note:meta])*
            pub fn $name:ident(&$this:ident $(, $argument:ident: $kind:ty)* $(,)?) -> Result<$answer:ty> $body:block
        )*
    ) => {
        impl<$element: $bound $(, $free: $dimension)?> crate::GlobalSlice<'_, $element, $dim> {
            $(
                $(#[$note])*
                #[track_caller]
                pub fn $name(&$this $(, $argument: $kind)*) -> Result<$answer> $body
            )*
        }

        impl<$element: $bound $(, $free: $dimension)?> crate::GlobalArray<$element, $dim> {
            $(
                $(#[$note])*
                #[track_caller]
                pub fn $name(&$this $(, $argument: $kind)*) -> Result<$answer> {
                    $this.whole().$name($($argument),*)
                }
            )*
        }
    };
}
pub(crate) use on_slices_and_arrays;
