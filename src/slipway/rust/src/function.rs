//! Functions that any language can call and define.

use std::ffi::c_void;
use std::os::raw::{c_char, c_int};
use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::abi::{index, Any, DLTensor, SafeCall};
use crate::convert::{FromArg, IntoResult};
use crate::error::{c_text, check, check_memory, Error, Result};
use crate::ffi;
use crate::object::Object;
use crate::tensor;
use crate::value::Value;
use crate::Element;

/// A function, of Rust or of another language. It keeps alive what it needs (its module).
#[derive(Clone)]
pub struct Function(pub(crate) Object);

/// An argument during a call.
#[repr(transparent)]
pub struct Arg(Any);

impl Arg {
    /// The argument as a value. A tensor that is only borrowed arrives as a copy; its own elements
    /// are reached by [`Arg::to_vec`] and [`Arg::copy_from`].
    pub fn value(&self) -> Result<Value> {
        unsafe { Value::from_any(&self.0) }
    }

    fn raw_tensor(&self) -> Result<&DLTensor> {
        let found = unsafe { ffi::slw_any_get_tensor(&self.0) };
        // It lives as long as the call, which the borrow of self does not outlive.
        unsafe { found.as_ref() }.ok_or_else(|| Error::new("TypeError", "expected a tensor"))
    }

    /// The shape of a tensor.
    pub fn shape(&self) -> Result<&[i64]> {
        self.raw_tensor().map(tensor::shape_of)
    }

    /// Copy a tensor's elements out.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        tensor::read(self.raw_tensor()?)
    }

    /// Copy elements into a tensor.
    pub fn copy_from<T: Element>(&self, elements: &[T]) -> Result<()> {
        tensor::write(self.raw_tensor()?, elements)
    }
}

type Body = dyn Fn(&[Arg]) -> Result<Value> + Send + Sync;

/// A closure as a function object: the head, TVM-FFI's cell, what is called.
#[repr(C)]
struct Closure {
    object: ffi::Object,
    safe_call: SafeCall,
    cpp_call: *mut c_void,
    body: Option<Box<Body>>,
}

unsafe extern "C" fn call_closure(
    handle: *mut c_void,
    args: *const Any,
    count: i32,
    result: *mut Any,
) -> i32 {
    // The caller holds a reference to the function object, which the handle is.
    let closure = unsafe { &*handle.cast::<Closure>() };
    let args: &[Arg] = match usize::try_from(count) {
        Ok(count) if count > 0 => unsafe { std::slice::from_raw_parts(args.cast(), count) },
        _ => &[],
    };
    let returned = catch_unwind(AssertUnwindSafe(|| match &closure.body {
        Some(body) => body(args)?.to_any(),
        None => Err(Error::new("RuntimeError", "the function is gone")),
    }));
    match returned {
        Ok(Ok(any)) => {
            unsafe { result.write(any) };
            0
        }
        Ok(Err(error)) => {
            error.set();
            -1
        }
        Err(panic) => {
            let said = panic
                .downcast_ref::<&str>()
                .map(|text| text.to_string())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_default();
            Error::new(
                "RuntimeError",
                format!("a function of Rust panicked: {}", said),
            )
            .set();
            -1
        }
    }
}

unsafe extern "C" fn delete_closure(object: *mut c_void, flags: c_int) {
    let closure = object.cast::<Closure>();
    if flags & 1 != 0 {
        // A panic may not cross into C.
        let body = unsafe { (*closure).body.take() };
        let _ = catch_unwind(AssertUnwindSafe(|| drop(body)));
    }
    if flags & 2 != 0 {
        drop(unsafe { Box::from_raw(closure) });
    }
}

impl Function {
    /// Make a function of a closure whose parameters say what it takes.
    ///
    /// Parameters may be integers, floats, `bool`, `String`, `Vec<u8>`, [`crate::Tensor`],
    /// [`Function`], [`crate::Module`], [`Value`]; results these and a [`Result`] of them.
    pub fn new<A, F: Typed<A>>(closure: F) -> Function {
        Function::packed(move |args| closure.invoke(args))
    }

    /// Make a function of a closure that takes any arguments.
    pub fn packed<F>(closure: F) -> Function
    where
        F: Fn(&[Arg]) -> Result<Value> + Send + Sync + 'static,
    {
        let mut made = Box::new(Closure {
            object: ffi::Object::empty(),
            safe_call: call_closure,
            cpp_call: std::ptr::null_mut(),
            body: Some(Box::new(closure)),
        });
        let object: *mut ffi::Object = &mut made.object;
        unsafe { ffi::slw_object_init(object, index::FUNCTION, delete_closure) };
        Function(unsafe { Object::owned(Box::into_raw(made).cast()) })
    }

    /// Return the global function of a name, whatever language it is of.
    pub fn get(name: &str) -> Result<Function> {
        let c_name = c_text(name)?;
        let mut found = std::ptr::null_mut();
        match unsafe { ffi::slw_registry_get(c_name.as_ptr(), &mut found) } {
            0 => Ok(Function(unsafe { Object::owned(found) })),
            _ => Err(Error::new(
                "ValueError",
                format!("there is no global function '{}'. Register it first.", name),
            )),
        }
    }

    /// Give the function a global name. A name that is taken is an error, unless `replace`.
    pub fn register(&self, name: &str, replace: bool) -> Result<()> {
        let name = c_text(name)?;
        let replace = c_int::from(replace);
        check(unsafe { ffi::slw_registry_set(name.as_ptr(), self.0.pointer(), replace) })?;
        // Another language may call it when the library that it lies in has been closed.
        unsafe { ffi::slw_library_pin(call_closure as *const c_void) };
        Ok(())
    }

    /// Call it. [`call!`](crate::call) takes arguments of any type.
    pub fn call(&self, args: &[Value]) -> Result<Value> {
        let mut given = Args(Vec::with_capacity(args.len()));
        for arg in args {
            given.0.push(arg.to_any()?);
        }
        let mut callee = ffi::Call {
            call: None,
            handle: std::ptr::null_mut(),
        };
        let mut result = Any::none();
        let status = unsafe {
            ffi::slw_error_clear();
            ffi::slw_any_get_function(&self.0.as_any(), &mut callee);
            let call = callee
                .call
                .ok_or_else(|| Error::new("TypeError", "no function"))?;
            call(
                callee.handle,
                given.0.as_ptr(),
                args.len() as i32,
                &mut result,
            )
        };
        if status != 0 {
            return Err(Error::last());
        }
        let value = unsafe { Value::from_any(&result) };
        unsafe { ffi::slw_any_clear(&mut result) };
        value
    }
}

/// Arguments, which are given back when the call is over.
struct Args(Vec<Any>);

impl Drop for Args {
    fn drop(&mut self) {
        for any in &mut self.0 {
            unsafe { ffi::slw_any_clear(any) };
        }
    }
}

/// Call a function with arguments of any type that a [`Value`] is made of.
///
/// ```no_run
/// use slipway_rt::{call, Function};
/// let sum: i64 = call!(Function::get("myadd")?, 1, 2)?.try_into()?;
/// # Ok::<(), slipway_rt::Error>(())
/// ```
#[macro_export]
macro_rules! call {
    ($function:expr $(, $arg:expr)* $(,)?) => {
        $function.call(&[$($crate::Value::from($arg)),*])
    };
}

/// Register a closure under a global name; see [`Function::new`] for what it may take.
pub fn register<A, F: Typed<A>>(name: &str, closure: F) -> Result<()> {
    Function::new(closure).register(name, false)
}

/// Register a closure that takes any arguments.
pub fn register_packed<F>(name: &str, closure: F) -> Result<()>
where
    F: Fn(&[Arg]) -> Result<Value> + Send + Sync + 'static,
{
    Function::packed(closure).register(name, false)
}

/// Take a global name out of the table.
pub fn remove(name: &str) -> Result<()> {
    let c_name = c_text(name)?;
    match unsafe { ffi::slw_registry_remove(c_name.as_ptr()) } {
        0 => Ok(()),
        _ => Err(Error::new(
            "ValueError",
            format!("there is no global function '{}'", name),
        )),
    }
}

/// The names of all global functions.
pub fn global_names() -> Result<Vec<String>> {
    unsafe extern "C" fn visit(context: *mut c_void, name: *const c_char, bytes: usize) {
        let names = unsafe { &mut *context.cast::<Vec<String>>() };
        let name = unsafe { std::slice::from_raw_parts(name.cast::<u8>(), bytes) };
        names.push(String::from_utf8_lossy(name).into_owned());
    }
    let mut names: Vec<String> = Vec::new();
    let context: *mut Vec<String> = &mut names;
    check_memory(unsafe { ffi::slw_registry_list(visit, context.cast()) })?;
    Ok(names)
}

/// A closure whose parameters are converted from arguments; `A` stands for their types.
pub trait Typed<A>: Send + Sync + 'static {
    /// Call the closure.
    fn invoke(&self, args: &[Arg]) -> Result<Value>;
}

macro_rules! typed {
    ($count:literal $(, $arg:ident $at:tt)*) => {
        impl<F, R, $($arg),*> Typed<(R, $($arg,)*)> for F
        where
            F: Fn($($arg),*) -> R + Send + Sync + 'static,
            R: IntoResult,
            $($arg: FromArg),*
        {
            fn invoke(&self, args: &[Arg]) -> Result<Value> {
                if args.len() != $count {
                    let text = format!("the function takes {} arguments, got {}", $count, args.len());
                    return Err(Error::new("TypeError", text));
                }
                self($($arg::from_arg(&args[$at], $at)?),*).into_result()
            }
        }
    };
}

typed!(0);
typed!(1, A 0);
typed!(2, A 0, B 1);
typed!(3, A 0, B 1, C 2);
typed!(4, A 0, B 1, C 2, D 3);
typed!(5, A 0, B 1, C 2, D 3, E 4);
typed!(6, A 0, B 1, C 2, D 3, E 4, G 5);
