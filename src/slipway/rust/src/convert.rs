//! Between Rust's types and values.

use crate::abi::{DataType, Device};
use crate::error::{Error, Result};
use crate::function::{Arg, Function};
use crate::module::Module;
use crate::tensor::Tensor;
use crate::value::Value;

fn expected<T>(wanted: &str, got: &Value) -> Result<T> {
    Err(Error::new(
        "TypeError",
        format!("expected {}, got {}", wanted, got.kind()),
    ))
}

macro_rules! whole {
    ($($rust:ty: $variant:ident $wanted:literal),*) => {$(
        impl From<$rust> for Value {
            fn from(value: $rust) -> Value {
                Value::$variant(value)
            }
        }
        impl TryFrom<Value> for $rust {
            type Error = Error;
            fn try_from(value: Value) -> Result<$rust> {
                match value {
                    Value::$variant(inner) => Ok(inner),
                    other => expected($wanted, &other),
                }
            }
        }
        impl IntoResult for $rust {
            fn into_result(self) -> Result<Value> {
                Ok(self.into())
            }
        }
    )*};
}

whole!(String: Str "str", Vec<u8>: Bytes "bytes", Device: Device "device",
       DataType: DataType "dtype", Tensor: Tensor "Tensor", Function: Function "Function",
       Module: Module "Module");

macro_rules! integers {
    ($($rust:ty),*) => {$(
        impl TryFrom<Value> for $rust {
            type Error = Error;
            fn try_from(value: Value) -> Result<$rust> {
                match value {
                    Value::Int(number) => <$rust>::try_from(number).map_err(|_| {
                        let text = format!("{} does not fit into {}", number, stringify!($rust));
                        Error::new("OverflowError", text)
                    }),
                    Value::Bool(flag) => Ok(<$rust>::from(flag)),
                    other => expected("int", &other),
                }
            }
        }
    )*};
}

integers!(i8, i16, i32, i64, u8, u16, u32, u64, usize);

macro_rules! small_integers {
    ($($rust:ty),*) => {$(
        impl From<$rust> for Value {
            fn from(value: $rust) -> Value {
                Value::Int(i64::from(value))
            }
        }
        impl IntoResult for $rust {
            fn into_result(self) -> Result<Value> {
                Ok(self.into())
            }
        }
    )*};
}

small_integers!(i8, i16, i32, i64, u8, u16, u32);

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Float(value)
    }
}

impl From<f32> for Value {
    fn from(value: f32) -> Value {
        Value::Float(f64::from(value))
    }
}

impl TryFrom<Value> for f64 {
    type Error = Error;
    fn try_from(value: Value) -> Result<f64> {
        match value {
            Value::Float(number) => Ok(number),
            Value::Int(number) => Ok(number as f64),
            other => expected("float", &other),
        }
    }
}

impl TryFrom<Value> for f32 {
    type Error = Error;
    fn try_from(value: Value) -> Result<f32> {
        f64::try_from(value).map(|number| number as f32)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl TryFrom<Value> for bool {
    type Error = Error;
    fn try_from(value: Value) -> Result<bool> {
        match value {
            Value::Bool(flag) => Ok(flag),
            Value::Int(number) => Ok(number != 0),
            other => expected("bool", &other),
        }
    }
}

impl From<()> for Value {
    fn from(_: ()) -> Value {
        Value::None
    }
}

impl TryFrom<Value> for () {
    type Error = Error;
    fn try_from(value: Value) -> Result<()> {
        match value {
            Value::None => Ok(()),
            other => expected("None", &other),
        }
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Str(value.to_string())
    }
}

impl From<&[u8]> for Value {
    fn from(value: &[u8]) -> Value {
        Value::Bytes(value.to_vec())
    }
}

macro_rules! shared {
    ($($rust:ty),*) => {$(
        impl From<&$rust> for Value {
            fn from(value: &$rust) -> Value {
                value.clone().into()
            }
        }
    )*};
}

shared!(Tensor, Function, Module, Value);

/// What a closure's parameter may be.
pub trait FromArg: Sized {
    /// Convert the argument at a place of the list.
    fn from_arg(arg: &Arg, at: usize) -> Result<Self>;
}

impl<T: TryFrom<Value>> FromArg for T
where
    Error: From<T::Error>,
{
    fn from_arg(arg: &Arg, at: usize) -> Result<T> {
        arg.value()
            .and_then(|value| Ok(T::try_from(value)?))
            .map_err(|error| Error::new(&error.kind, format!("argument {}: {}", at, error.message)))
    }
}

impl From<std::convert::Infallible> for Error {
    fn from(never: std::convert::Infallible) -> Error {
        match never {}
    }
}

/// What a closure may return.
pub trait IntoResult {
    /// Convert it.
    fn into_result(self) -> Result<Value>;
}

macro_rules! results {
    ($($rust:ty),*) => {$(
        impl IntoResult for $rust {
            fn into_result(self) -> Result<Value> {
                Ok(self.into())
            }
        }
    )*};
}

results!(f64, f32, bool, (), &'static str, Value);

impl<T: IntoResult> IntoResult for Result<T> {
    fn into_result(self) -> Result<Value> {
        self.and_then(T::into_result)
    }
}
