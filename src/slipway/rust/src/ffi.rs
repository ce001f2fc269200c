//! The functions of the C runtime (`slipway/*.h`) that this crate calls.

use std::ffi::c_void;
use std::os::raw::{c_char, c_int};

use crate::abi::{Any, DLTensor, DataType, Device, SafeCall};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Call {
    pub call: Option<SafeCall>,
    pub handle: *mut c_void,
}

/// An object of the calling convention, known by its address only.
#[repr(C)]
pub struct Object {
    counts: u64,
    pub type_index: i32,
    padding: u32,
    deleter: *mut c_void,
}

impl Object {
    /// A head for `slw_object_init` to fill.
    pub fn empty() -> Object {
        Object {
            counts: 0,
            type_index: 0,
            padding: 0,
            deleter: std::ptr::null_mut(),
        }
    }
}

/// The head of `slw_tensor`.
#[repr(C)]
pub struct TensorObject {
    pub object: Object,
    pub tensor: DLTensor,
}

pub type ListVisitor =
    unsafe extern "C" fn(context: *mut c_void, name: *const c_char, bytes: usize);

extern "C" {
    pub fn slw_error_kind() -> *const c_char;
    pub fn slw_error_message() -> *const c_char;
    pub fn slw_error_set(kind: *const c_char, message: *const c_char);
    pub fn slw_error_clear();
    pub fn slw_error_fetch();

    pub fn slw_object_init(
        object: *mut Object,
        type_index: i32,
        deleter: unsafe extern "C" fn(object: *mut c_void, flags: c_int),
    );
    pub fn slw_object_retain(object: *mut Object);
    pub fn slw_object_release(object: *mut Object);
    pub fn slw_any_clear(value: *mut Any);
    pub fn slw_any_set_string(out: *mut Any, data: *const c_char, bytes: usize) -> c_int;
    pub fn slw_any_set_bytes(out: *mut Any, data: *const c_void, bytes: usize) -> c_int;
    pub fn slw_any_get_bytes(value: *const Any, data: *mut *const u8, bytes: *mut usize) -> c_int;
    pub fn slw_any_get_tensor(value: *const Any) -> *mut DLTensor;
    pub fn slw_any_set_function(out: *mut Any, function: Call, owner: *mut Object) -> c_int;
    pub fn slw_any_get_function(value: *const Any, out: *mut Call) -> c_int;

    pub fn slw_tensor_alloc(
        shape: *const i64,
        ndim: i32,
        dtype: DataType,
        device: Device,
        out: *mut *mut TensorObject,
    ) -> c_int;
    pub fn slw_tensor_is_contiguous(tensor: *const DLTensor) -> c_int;

    pub fn slw_tensor_copy(from: *const DLTensor, to: *mut DLTensor) -> c_int;
    pub fn slw_library_pin(address: *const c_void);

    pub fn slw_module_open(path: *const c_char, out: *mut *mut Object) -> c_int;
    pub fn slw_module_get_function(
        module: *mut Object,
        name: *const c_char,
        out: *mut Call,
    ) -> c_int;
    pub fn slw_object_is_module(object: *const Object) -> c_int;
    pub fn slw_module_type_key(module: *const Object) -> *const c_char;

    pub fn slw_registry_set(name: *const c_char, function: *mut Object, replace: c_int) -> c_int;
    pub fn slw_registry_get(name: *const c_char, out: *mut *mut Object) -> c_int;
    pub fn slw_registry_remove(name: *const c_char) -> c_int;
    pub fn slw_registry_list(visit: ListVisitor, context: *mut c_void) -> c_int;

    pub fn slw_model_open(path: *const c_char, out: *mut *mut c_void) -> c_int;
    pub fn slw_model_close(model: *mut c_void);
    pub fn slw_model_num_inputs(model: *const c_void) -> i32;
    pub fn slw_model_num_outputs(model: *const c_void) -> i32;
    pub fn slw_model_input_name(model: *const c_void, index: i32) -> *const c_char;
    pub fn slw_model_output_name(model: *const c_void, index: i32) -> *const c_char;
    pub fn slw_model_input(model: *const c_void, index: i32) -> *const DLTensor;
    pub fn slw_model_output(model: *const c_void, index: i32) -> *const DLTensor;
    pub fn slw_model_set_input(
        model: *mut c_void,
        name: *const c_char,
        data: *const c_void,
        bytes: usize,
    ) -> c_int;
    pub fn slw_model_set_input_shaped(
        model: *mut c_void,
        name: *const c_char,
        data: *const c_void,
        bytes: usize,
        shape: *const i64,
        ndim: i32,
    ) -> c_int;
    pub fn slw_model_run(model: *mut c_void) -> c_int;
    pub fn slw_model_reset_states(model: *mut c_void) -> c_int;
}
