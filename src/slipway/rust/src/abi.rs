//! The binary interface of compiled functions: TVM-FFI's values and DLPack's tensors
//! (`slipway/abi.h`).

use core::ffi::c_void;
use core::fmt;

/// A kind of device and a number.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// DLPack's number of the kind; 1 is the processor.
    pub device_type: i32,
    /// Which of them.
    pub device_id: i32,
}

impl Device {
    /// The processor.
    pub const fn cpu() -> Device {
        Device {
            device_type: 1,
            device_id: 0,
        }
    }
}

/// The type of an element, as DLPack codes it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataType {
    /// 0 integer, 1 unsigned, 2 float, 4 bfloat, 6 boolean.
    pub code: u8,
    /// Bits of one lane.
    pub bits: u8,
    /// Lanes of a vector; 1 for a number.
    pub lanes: u16,
}

/// As everywhere: float32, int8x4, bool.
impl fmt::Display for DataType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = ["int", "uint", "float", "handle", "bfloat", "complex", "bool"];
        let kind = kinds.get(usize::from(self.code)).unwrap_or(&"unknown");
        out.write_str(kind)?;
        if self.code != 6 {
            write!(out, "{}", self.bits)?;
        }
        match self.lanes {
            1 => Ok(()),
            lanes => write!(out, "x{}", lanes),
        }
    }
}

/// A tensor that owns nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLTensor {
    /// Where the elements lie, less `byte_offset`.
    pub data: *mut c_void,
    /// Where that memory is.
    pub device: Device,
    /// The number of dimensions.
    pub ndim: i32,
    /// Of the elements.
    pub dtype: DataType,
    /// `ndim` extents.
    pub shape: *mut i64,
    /// `ndim` strides in elements; null means row-major and compact.
    pub strides: *mut i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// What an [`Any`] holds, by its `type_index`.
#[allow(missing_docs)]
pub mod index {
    pub const NONE: i32 = 0;
    pub const INT: i32 = 1;
    pub const BOOL: i32 = 2;
    pub const FLOAT: i32 = 3;
    pub const DATA_TYPE: i32 = 5;
    pub const DEVICE: i32 = 6;
    pub const DLTENSOR: i32 = 7;
    pub const FUNCTION: i32 = 68;
    pub const TENSOR: i32 = 70;
    pub const MODULE: i32 = 73;
    pub const OBJECTS: i32 = 64;
}

/// The payload of an [`Any`].
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub union Payload {
    pub int: i64,
    pub float: f64,
    pub pointer: *mut c_void,
    pub dtype: DataType,
    pub device: Device,
}

/// One tagged value of 16 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Any {
    /// One of [`index`].
    pub type_index: i32,
    /// Zero, or the length of a short text.
    pub small_len: u32,
    /// What the index says.
    pub payload: Payload,
}

impl Any {
    /// Nothing.
    pub const fn none() -> Any {
        Any {
            type_index: index::NONE,
            small_len: 0,
            payload: Payload { int: 0 },
        }
    }

    /// A tensor that the caller keeps for as long as the value is used.
    pub fn tensor(tensor: *mut DLTensor) -> Any {
        let payload = Payload {
            pointer: tensor.cast(),
        };
        Any {
            type_index: index::DLTENSOR,
            small_len: 0,
            payload,
        }
    }
}

/// A compiled function, under the symbol `__tvm_ffi_<name>`: 0, or another number when it failed.
pub type SafeCall = unsafe extern "C" fn(
    handle: *mut c_void,
    args: *const Any,
    count: i32,
    result: *mut Any,
) -> i32;
