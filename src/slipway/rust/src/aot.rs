//! What is linked into the program: needs no library, no allocator, no operating system.

use core::ffi::c_void;
use core::fmt;
use core::marker::PhantomData;

use crate::abi::{Any, DLTensor, Device, SafeCall};
use crate::Element;

/// A tensor over memory of the caller's.
pub struct View<'a> {
    raw: DLTensor,
    memory: PhantomData<&'a mut [u8]>,
}

impl<'a> View<'a> {
    /// Look at elements as a tensor; `None` if they are not as many as the shape says.
    pub fn new<T: Element>(elements: &'a mut [T], shape: &'a mut [i64]) -> Option<View<'a>> {
        let mut count: usize = 1;
        for extent in shape.iter() {
            count = count.checked_mul(usize::try_from(*extent).ok()?)?;
        }
        if count != elements.len() {
            return None;
        }
        let raw = DLTensor {
            data: elements.as_mut_ptr().cast::<c_void>(),
            device: Device::cpu(),
            ndim: i32::try_from(shape.len()).ok()?,
            dtype: T::DTYPE,
            shape: shape.as_mut_ptr(),
            strides: core::ptr::null_mut(),
            byte_offset: 0,
        };
        Some(View {
            raw,
            memory: PhantomData,
        })
    }

    /// The tensor for the C interface, valid while this view is.
    pub fn as_raw(&mut self) -> *mut DLTensor {
        &mut self.raw
    }
}

/// A compiled function or model that returned something else than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// What it returned: of a model one of the `TVMGEN_..._STATUS_...`.
    pub status: i32,
}

impl fmt::Display for Failed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the compiled code returned {}", self.status)
    }
}

#[cfg(feature = "std")]
impl std::error::Error for Failed {}

const MOST_TENSORS: usize = 16;

/// Call a compiled function that takes tensors. It checks their shapes and types itself.
///
/// # Safety
/// `function` must be one that Slipway compiled (a symbol `__tvm_ffi_<name>`).
pub unsafe fn call_compiled(
    function: SafeCall,
    tensors: &mut [View<'_>],
) -> core::result::Result<(), Failed> {
    let mut args = [Any::none(); MOST_TENSORS];
    if tensors.len() > MOST_TENSORS {
        return Err(Failed { status: -1 });
    }
    for (arg, tensor) in args.iter_mut().zip(tensors.iter_mut()) {
        *arg = Any::tensor(tensor.as_raw());
    }
    let mut result = Any::none();
    // Sound by what the caller promises: the function reads as many values as there are, and its
    // tensors live as long as `tensors` is borrowed.
    let status = unsafe {
        function(
            core::ptr::null_mut(),
            args.as_ptr(),
            tensors.len() as i32,
            &mut result,
        )
    };
    if status == 0 {
        Ok(())
    } else {
        Err(Failed { status })
    }
}

/// Memory that begins at a multiple of 64 bytes, as every input and output may.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct AlignedTo64<T>(
    /// What lies there.
    pub T,
);

/// Declare a model that was compiled ahead of time (`Executor("aot", {"interface-api": "c"})`) and
/// its header's `tvmgen_<name>_run`.
///
/// ```
/// slipway_rt::aot_model! {
///     /// Finds the digit in a picture.
///     pub mod digits = "tvmgen_digits_run" {
///         inputs { image: [f32; 64] }
///         outputs { scores: [f32; 10] }
///     }
/// }
/// ```
///
/// makes `digits::run(digits::Inputs { image: &image }, digits::Outputs { scores: &mut scores })`.
/// Inputs and outputs stand in the header's order. The sizes written here must be those of the
/// header (`TVMGEN_DIGITS_IMAGE_SIZE` bytes): the linker cannot check that.
#[macro_export]
macro_rules! aot_model {
    (
        $(#[$about:meta])*
        $visible:vis mod $name:ident = $symbol:literal {
            inputs { $($input:ident: $input_type:ty),* $(,)? }
            outputs { $($output:ident: $output_type:ty),* $(,)? }
        }
    ) => {
        $(#[$about])*
        $visible mod $name {
            /// What the model reads.
            pub struct Inputs<'a> { $(#[allow(missing_docs)] pub $input: &'a $input_type),* }
            /// What it writes.
            pub struct Outputs<'a> { $(#[allow(missing_docs)] pub $output: &'a mut $output_type),* }

            #[repr(C)]
            struct RawInputs { $($input: *const $input_type),* }
            #[repr(C)]
            struct RawOutputs { $($output: *mut $output_type),* }

            extern "C" {
                #[link_name = $symbol]
                fn raw_run(inputs: *mut RawInputs, outputs: *mut RawOutputs) -> i32;
            }

            /// Run the model once.
            pub fn run(
                inputs: Inputs<'_>,
                outputs: Outputs<'_>,
            ) -> ::core::result::Result<(), $crate::Failed> {
                let mut raw_inputs = RawInputs { $($input: inputs.$input),* };
                let mut raw_outputs = RawOutputs { $($output: outputs.$output),* };
                // The references give memory of the sizes that were declared, which do not overlap.
                let status = unsafe { raw_run(&mut raw_inputs, &mut raw_outputs) };
                if status == 0 { Ok(()) } else { Err($crate::Failed { status }) }
            }
        }
    };
}
