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
elements!(F16: 2, Bf16: 4, Bool8: 6);

/// The bits of a float16.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct F16(pub u16);

/// The bits of a bfloat16.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bf16(pub u16);

/// A truth value as tensors hold it: a byte, of which every one but 0 is true.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bool8(pub u8);

impl From<bool> for Bool8 {
    fn from(value: bool) -> Bool8 {
        Bool8(u8::from(value))
    }
}

impl From<Bool8> for bool {
    fn from(value: Bool8) -> bool {
        value.0 != 0
    }
}

/// The nearest, ties to even; from 65520 on infinite.
impl From<f32> for F16 {
    fn from(value: f32) -> F16 {
        let bits = value.to_bits();
        let (sign, size) = ((bits >> 16) as u16 & 0x8000, bits & 0x7fff_ffff);
        let rest = match size {
            0x7f80_0001.. => 0x7e00,
            0x477f_f000.. => 0x7c00,
            // In steps of 2^-24: adding 2^23 rounds to whole ones.
            0..=0x387f_ffff => (f32::from_bits(size) * 16_777_216.0 + 8_388_608.0).to_bits() as u16,
            _ => ((size + 0xfff + ((size >> 13) & 1) - 0x3800_0000) >> 13) as u16,
        };
        F16(sign | rest)
    }
}

impl From<F16> for f32 {
    fn from(value: F16) -> f32 {
        let (sign, rest) = (u32::from(value.0 & 0x8000) << 16, u32::from(value.0 & 0x7fff));
        let size = match rest >> 10 {
            0 => (rest as f32 / 16_777_216.0).to_bits(),
            31 => 0x7f80_0000 | (rest & 0x3ff) << 13,
            _ => (rest << 13) + 0x3800_0000,
        };
        f32::from_bits(sign | size)
    }
}

/// The nearest, ties to even.
impl From<f32> for Bf16 {
    fn from(value: f32) -> Bf16 {
        let bits = value.to_bits();
        if value.is_nan() {
            return Bf16((bits >> 16) as u16 | 0x40);
        }
        Bf16(((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) as u16)
    }
}

impl From<Bf16> for f32 {
    fn from(value: Bf16) -> f32 {
        f32::from_bits(u32::from(value.0) << 16)
    }
}
