//! Numbers that tensors are made of.

use crate::abi::DataType;

/// A number that a tensor may hold.
///
/// # Safety
/// `DTYPE` must say what the type is in memory, and every pattern of bits must be a value of it.
pub unsafe trait Element: Copy + 'static {
    /// DLPack's type for it.
    const DTYPE: DataType;
}

macro_rules! elements {
    ($($rust:ty: $code:expr),*) => {$(
        unsafe impl Element for $rust {
            const DTYPE: DataType = DataType {
                code: $code,
                bits: 8 * core::mem::size_of::<$rust>() as u8,
                lanes: 1,
            };
        }
    )*};
}

elements!(i8: 0, i16: 0, i32: 0, i64: 0, u8: 1, u16: 1, u32: 1, u64: 1, f32: 2, f64: 2);
