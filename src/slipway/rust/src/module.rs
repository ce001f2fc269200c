//! Modules: things that hand out functions by name.

use std::path::Path;

use crate::abi::Any;
use crate::error::{c_text, check, check_memory, text, Error, Result};
use crate::ffi;
use crate::function::Function;
use crate::object::Object;

/// An exported library, or one instance of a model.
#[derive(Clone)]
pub struct Module(pub(crate) Object);

impl Module {
    /// Load an exported `.so` or `.tar`.
    pub fn load(path: impl AsRef<Path>) -> Result<Module> {
        let path = path_text(path.as_ref())?;
        let mut made = std::ptr::null_mut();
        check(unsafe { ffi::slw_module_open(path.as_ptr(), &mut made) })?;
        Ok(Module(unsafe { Object::owned(made) }))
    }

    /// Return a function, which keeps the module alive; the error lists those that there are.
    pub fn function(&self, name: &str) -> Result<Function> {
        let name = c_text(name)?;
        let mut found = ffi::Call {
            call: None,
            handle: std::ptr::null_mut(),
        };
        let mut any = Any::none();
        let module = self.0.pointer();
        check(unsafe { ffi::slw_module_get_function(module, name.as_ptr(), &mut found) })?;
        check_memory(unsafe { ffi::slw_any_set_function(&mut any, found, module) })?;
        Ok(Function(unsafe {
            Object::owned(any.payload.pointer.cast())
        }))
    }

    /// What kind of module it is: `library`, `graph`, ...
    pub fn type_key(&self) -> String {
        text(unsafe { ffi::slw_module_type_key(self.0.pointer()) })
    }
}

pub(crate) fn path_text(path: &Path) -> Result<std::ffi::CString> {
    let text = path.to_str().ok_or_else(|| {
        Error::new(
            "ValueError",
            format!("the path {} is not valid UTF-8", path.display()),
        )
    })?;
    c_text(text)
}
