//! Models and functions that Slipway compiled, called from Rust; functions of Rust, called from
//! Python, C++ and compiled code.
//!
//! ```no_run
//! use slipway_rt::Model;
//! let mut model = Model::load("model.tar")?;
//! model.set_input("input", &[1.0f32; 3 * 8 * 8])?;
//! model.run()?;
//! let scores: Vec<f32> = model.output(0)?;
//! # Ok::<(), slipway_rt::Error>(())
//! ```
//!
//! Without the feature `std` the crate needs `core` alone, and calls programs and functions that are
//! compiled ahead of time and linked into the firmware: [`aot_model!`] and [`call_compiled`].

#![cfg_attr(not(feature = "std"), no_std)]
#![deny(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

pub mod abi;
mod aot;
mod element;

pub use aot::{call_compiled, AlignedTo64, Failed, View};
pub use abi::{DataType, Device};
pub use element::{Bf16, Bool8, Element, F16};

#[cfg(feature = "std")]
mod convert;
#[cfg(feature = "std")]
mod error;
#[cfg(feature = "std")]
mod ffi;
#[cfg(feature = "std")]
mod function;
#[cfg(feature = "std")]
mod model;
#[cfg(feature = "std")]
mod module;
#[cfg(feature = "std")]
mod object;
#[cfg(feature = "std")]
mod tensor;
#[cfg(feature = "std")]
mod value;

#[cfg(feature = "std")]
pub use crate::{
    convert::{FromArg, IntoResult},
    error::{Error, Result},
    function::{global_names, register, register_packed, remove, Arg, Function, Typed},
    model::{InputInfo, Model},
    module::Module,
    tensor::Tensor,
    value::Value,
};
