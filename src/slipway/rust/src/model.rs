//! A model: load, fill the inputs, run, read the outputs.

use std::ffi::c_void;
use std::path::Path;

use crate::abi::{DLTensor, DataType};
use crate::error::{c_text, check, text, Error, Result};
use crate::module::path_text;
use crate::{ffi, tensor, Element};

/// One instance of a model.
pub struct Model(*mut c_void);

// The model and all that it is made of belong to this object alone.
unsafe impl Send for Model {}

/// What an input takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputInfo {
    /// Its name.
    pub name: String,
    /// Its extents.
    pub shape: Vec<i64>,
    /// The type of its elements.
    pub dtype: DataType,
}

impl Model {
    /// Load an exported `.so` or `.tar`, parameters set.
    pub fn load(path: impl AsRef<Path>) -> Result<Model> {
        let path = path_text(path.as_ref())?;
        let mut made = std::ptr::null_mut();
        check(unsafe { ffi::slw_model_open(path.as_ptr(), &mut made) })?;
        Ok(Model(made))
    }

    fn input(&self, index: i32) -> Option<&DLTensor> {
        unsafe { ffi::slw_model_input(self.0, index).as_ref() }
    }

    fn output_tensor(&self, index: usize) -> Result<&DLTensor> {
        let number = i32::try_from(index).unwrap_or(-1);
        unsafe { ffi::slw_model_output(self.0, number).as_ref() }.ok_or_else(|| {
            let count = self.num_outputs();
            Error::new(
                "IndexError",
                format!("there is no output {}, the model has {}", index, count),
            )
        })
    }

    /// The inputs that a caller sets; parameters do not count.
    pub fn inputs(&self) -> Vec<InputInfo> {
        (0..unsafe { ffi::slw_model_num_inputs(self.0) })
            .filter_map(|index| {
                self.input(index).map(|raw| InputInfo {
                    name: text(unsafe { ffi::slw_model_input_name(self.0, index) }),
                    shape: tensor::shape_of(raw).to_vec(),
                    dtype: raw.dtype,
                })
            })
            .collect()
    }

    /// How many outputs there are.
    pub fn num_outputs(&self) -> usize {
        unsafe { ffi::slw_model_num_outputs(self.0) as usize }
    }

    /// The name of an output.
    pub fn output_name(&self, index: usize) -> Result<String> {
        self.output_tensor(index)
            .map(|_| text(unsafe { ffi::slw_model_output_name(self.0, index as i32) }))
    }

    /// The shape of an output: what the last run gave it, where that decides a size, and before
    /// the first one the largest.
    pub fn output_shape(&self, index: usize) -> Result<&[i64]> {
        self.output_tensor(index).map(tensor::shape_of)
    }

    /// The type of an output's elements.
    pub fn output_dtype(&self, index: usize) -> Result<DataType> {
        self.output_tensor(index).map(|tensor| tensor.dtype)
    }

    /// Copy the elements of an input in, row-major.
    pub fn set_input<T: Element>(&mut self, name: &str, elements: &[T]) -> Result<()> {
        self.check_dtype::<T>(name)?;
        let name = c_text(name)?;
        let bytes = std::mem::size_of_val(elements);
        check(unsafe {
            ffi::slw_model_set_input(self.0, name.as_ptr(), elements.as_ptr().cast(), bytes)
        })
    }

    /// The same, and the shape that decides the open sizes: inputs that share one are all to be
    /// set.
    pub fn set_input_shaped<T: Element>(
        &mut self,
        name: &str,
        elements: &[T],
        shape: &[i64],
    ) -> Result<()> {
        self.check_dtype::<T>(name)?;
        let name = c_text(name)?;
        let bytes = std::mem::size_of_val(elements);
        let count = i32::try_from(shape.len()).unwrap_or(i32::MAX);
        check(unsafe {
            ffi::slw_model_set_input_shaped(
                self.0,
                name.as_ptr(),
                elements.as_ptr().cast(),
                bytes,
                shape.as_ptr(),
                count,
            )
        })
    }

    fn check_dtype<T: Element>(&self, name: &str) -> Result<()> {
        let inputs = self.inputs();
        match inputs.iter().find(|input| input.name == name) {
            Some(input) if input.dtype != T::DTYPE => Err(Error::new(
                "ExecutionError",
                format!("input '{}' is {}, not {}", name, input.dtype, T::DTYPE),
            )),
            _ => Ok(()),
        }
    }

    /// Let what lives from run to run begin anew, as when the model was loaded.
    pub fn reset_states(&mut self) -> Result<()> {
        check(unsafe { ffi::slw_model_reset_states(self.0) })
    }

    /// Run the model once.
    pub fn run(&mut self) -> Result<()> {
        check(unsafe { ffi::slw_model_run(self.0) })
    }

    /// Copy an output out.
    pub fn output<T: Element>(&self, index: usize) -> Result<Vec<T>> {
        tensor::read(self.output_tensor(index)?)
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        unsafe { ffi::slw_model_close(self.0) }
    }
}
