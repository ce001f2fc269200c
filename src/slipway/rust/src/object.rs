//! Counted objects of the calling convention.

use crate::abi::{index, Any, Payload};
use crate::ffi;

/// One reference to an object.
pub(crate) struct Object(*mut ffi::Object);

impl Object {
    /// Take over a reference that the C runtime gave out.
    ///
    /// # Safety
    /// `pointer` is a live object, and the reference is not released by anybody else.
    pub(crate) unsafe fn owned(pointer: *mut ffi::Object) -> Object {
        Object(pointer)
    }

    /// Make another reference to an object.
    ///
    /// # Safety
    /// `pointer` is a live object.
    pub(crate) unsafe fn shared(pointer: *mut ffi::Object) -> Object {
        unsafe { ffi::slw_object_retain(pointer) };
        Object(pointer)
    }

    pub(crate) fn pointer(&self) -> *mut ffi::Object {
        self.0
    }

    /// The object as a value, which borrows it.
    pub(crate) fn as_any(&self) -> Any {
        let type_index = unsafe { (*self.0).type_index };
        debug_assert!(type_index >= index::OBJECTS);
        Any {
            type_index,
            small_len: 0,
            payload: Payload {
                pointer: self.0.cast(),
            },
        }
    }
}

impl Clone for Object {
    fn clone(&self) -> Object {
        unsafe { Object::shared(self.0) }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        unsafe { ffi::slw_object_release(self.0) }
    }
}
