//! Values that pass through functions.

use crate::abi::{index, Any, DataType, Device, Payload};
use crate::error::{check_memory, Error, Result};
use crate::ffi;
use crate::function::Function;
use crate::module::Module;
use crate::object::Object;
use crate::tensor::Tensor;

/// An argument or a result, which owns what it holds.
#[derive(Clone)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Value {
    None,
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(String),
    Bytes(Vec<u8>),
    Device(Device),
    DataType(DataType),
    Tensor(Tensor),
    Function(Function),
    Module(Module),
}

impl Value {
    /// What it is, in words.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::None => "None",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Bool(_) => "bool",
            Value::Str(_) => "str",
            Value::Bytes(_) => "bytes",
            Value::Device(_) => "device",
            Value::DataType(_) => "dtype",
            Value::Tensor(_) => "Tensor",
            Value::Function(_) => "Function",
            Value::Module(_) => "Module",
        }
    }

    /// Write the value in the calling convention: it owns a reference, as a result does.
    pub(crate) fn to_any(&self) -> Result<Any> {
        let mut any = Any::none();
        let (type_index, payload) = match self {
            Value::None => return Ok(any),
            Value::Int(value) => (index::INT, Payload { int: *value }),
            Value::Bool(value) => (
                index::BOOL,
                Payload {
                    int: i64::from(*value),
                },
            ),
            Value::Float(value) => (index::FLOAT, Payload { float: *value }),
            Value::Device(device) => (index::DEVICE, Payload { device: *device }),
            Value::DataType(dtype) => {
                any.payload.int = 0;
                (index::DATA_TYPE, Payload { dtype: *dtype })
            }
            Value::Str(text) => {
                let data = text.as_ptr().cast();
                check_memory(unsafe { ffi::slw_any_set_string(&mut any, data, text.len()) })?;
                return Ok(any);
            }
            Value::Bytes(bytes) => {
                let data = bytes.as_ptr().cast();
                check_memory(unsafe { ffi::slw_any_set_bytes(&mut any, data, bytes.len()) })?;
                return Ok(any);
            }
            Value::Tensor(Tensor(object))
            | Value::Function(Function(object))
            | Value::Module(Module(object)) => {
                let shared = object.clone();
                any = shared.as_any();
                std::mem::forget(shared);
                return Ok(any);
            }
        };
        any.type_index = type_index;
        any.payload = payload;
        Ok(any)
    }

    /// Read a value of the calling convention, sharing the object that it holds.
    ///
    /// # Safety
    /// `any` is valid.
    pub(crate) unsafe fn from_any(any: &Any) -> Result<Value> {
        let payload = any.payload;
        unsafe {
            let object = || Object::shared(payload.pointer.cast());
            Ok(match any.type_index {
                index::NONE => Value::None,
                index::INT => Value::Int(payload.int),
                index::BOOL => Value::Bool(payload.int != 0),
                index::FLOAT => Value::Float(payload.float),
                index::DEVICE => Value::Device(payload.device),
                index::DATA_TYPE => Value::DataType(payload.dtype),
                index::TENSOR => Value::Tensor(Tensor(object())),
                index::DLTENSOR if !payload.pointer.is_null() => {
                    Value::Tensor(Tensor::copy_of(&*payload.pointer.cast())?)
                }
                index::FUNCTION => Value::Function(Function(object())),
                index::MODULE if ffi::slw_object_is_module(payload.pointer.cast()) != 0 => {
                    Value::Module(Module(object()))
                }
                _ => return Value::from_text(any),
            })
        }
    }

    unsafe fn from_text(any: &Any) -> Result<Value> {
        let mut data = std::ptr::null();
        let mut length = 0;
        if unsafe { ffi::slw_any_get_bytes(any, &mut data, &mut length) } != 0 {
            return Err(Error::new(
                "TypeError",
                format!(
                    "a value of type index {} has no counterpart in Rust",
                    any.type_index
                ),
            ));
        }
        let bytes = match length {
            0 => Vec::new(),
            _ => unsafe { std::slice::from_raw_parts(data, length) }.to_vec(),
        };
        const TEXTS: [i32; 3] = [8, 11, 65]; // RawStr, SmallStr, Str
        if !TEXTS.contains(&any.type_index) {
            return Ok(Value::Bytes(bytes));
        }
        String::from_utf8(bytes)
            .map(Value::Str)
            .map_err(|_| Error::new("ValueError", "a text is not valid UTF-8"))
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Int(value) => write!(out, "{:?}", value),
            Value::Float(value) => write!(out, "{:?}", value),
            Value::Bool(value) => write!(out, "{:?}", value),
            Value::Str(value) => write!(out, "{:?}", value),
            Value::Bytes(value) => write!(out, "{:?}", value),
            Value::Tensor(value) => write!(out, "{:?}", value),
            other => write!(out, "{}", other.kind()),
        }
    }
}
