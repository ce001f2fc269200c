//! Errors: the class that they have in Python, and a message.

use std::ffi::{CStr, CString};
use std::fmt;

use crate::ffi;

/// What failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The name of the class in Python: `ValueError`, `ArtifactError`, ...
    pub kind: String,
    /// What was wrong, where, and what to do.
    pub message: String,
}

/// The result of what can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Make an error for the caller of a function, in whatever language.
    pub fn new(kind: &str, message: impl Into<String>) -> Error {
        Error {
            kind: kind.to_string(),
            message: message.into(),
        }
    }

    /// The error that the C runtime has set on this thread.
    pub(crate) fn last() -> Error {
        // Both texts are valid until the thread's next call.
        unsafe {
            ffi::slw_error_fetch();
            Error {
                kind: text(ffi::slw_error_kind()),
                message: text(ffi::slw_error_message()),
            }
        }
    }

    /// Set this as the thread's error, for a caller behind the C interface.
    pub(crate) fn set(&self) {
        let kind = c_text_cut(&self.kind);
        let message = c_text_cut(&self.message);
        unsafe { ffi::slw_error_set(kind.as_ptr(), message.as_ptr()) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.kind, self.message)
    }
}

impl std::error::Error for Error {}

/// Copy a text of C.
pub(crate) fn text(pointer: *const std::os::raw::c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    unsafe { CStr::from_ptr(pointer) }
        .to_string_lossy()
        .into_owned()
}

/// A text for C, which cannot hold a NUL.
pub(crate) fn c_text(text: &str) -> Result<CString> {
    CString::new(text)
        .map_err(|_| Error::new("ValueError", format!("{:?} holds a NUL character", text)))
}

fn c_text_cut(text: &str) -> CString {
    let whole = text.split('\0').next().unwrap_or("");
    CString::new(whole).unwrap_or_default()
}

/// Whether a function of the C runtime succeeded.
pub(crate) fn check(status: std::os::raw::c_int) -> Result<()> {
    if status == 0 {
        Ok(())
    } else {
        Err(Error::last())
    }
}

/// As [`check`], for functions that report only that there was no memory.
pub(crate) fn check_memory(status: std::os::raw::c_int) -> Result<()> {
    if status == 0 {
        Ok(())
    } else {
        Err(Error::new("MemoryError", "there is no memory for a value"))
    }
}
