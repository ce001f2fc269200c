//! Arrays on the processor.

use std::fmt;

use crate::abi::{DLTensor, DataType, Device};
use crate::error::{Error, Result};
use crate::ffi;
use crate::object::Object;
use crate::Element;

/// A counted array. Clones, and what functions were given, are the same memory; elements are
/// therefore copied in and out.
#[derive(Clone)]
pub struct Tensor(pub(crate) Object);

impl Tensor {
    /// Make an array of zeros.
    pub fn zeros<T: Element>(shape: &[i64]) -> Result<Tensor> {
        let count = i32::try_from(shape.len()).unwrap_or(i32::MAX);
        let mut made = std::ptr::null_mut();
        let status = unsafe {
            ffi::slw_tensor_alloc(shape.as_ptr(), count, T::DTYPE, Device::cpu(), &mut made)
        };
        if status == 2 {
            return Err(Error::new(
                "MemoryError",
                format!("no memory for shape {:?}", shape),
            ));
        }
        if status != 0 {
            return Err(Error::new(
                "ValueError",
                format!(
                    "{:?} is no shape of an array: extents are 0 or more, 16 at most",
                    shape
                ),
            ));
        }
        Ok(Tensor(unsafe { Object::owned(made.cast()) }))
    }

    /// Make an array with these elements, row-major.
    pub fn new<T: Element>(elements: &[T], shape: &[i64]) -> Result<Tensor> {
        let made = Tensor::zeros::<T>(shape)?;
        made.copy_from(elements)?;
        Ok(made)
    }

    /// Copy a tensor that is only borrowed.
    pub(crate) fn copy_of(raw: &DLTensor) -> Result<Tensor> {
        let mut made = std::ptr::null_mut();
        let failed = Error::new(
            "ValueError",
            "a borrowed tensor must be contiguous and on the CPU",
        );
        unsafe {
            let device = Device::cpu();
            if ffi::slw_tensor_alloc(raw.shape, raw.ndim, raw.dtype, device, &mut made) != 0 {
                return Err(failed);
            }
            let copied = Tensor(Object::owned(made.cast()));
            match ffi::slw_tensor_copy(raw, &mut (*made).tensor) {
                0 => Ok(copied),
                _ => Err(failed),
            }
        }
    }

    pub(crate) fn raw(&self) -> &DLTensor {
        // A tensor's DLTensor lies behind the object's head, and lives as long.
        unsafe { &(*self.0.pointer().cast::<ffi::TensorObject>()).tensor }
    }

    /// The extents.
    pub fn shape(&self) -> &[i64] {
        shape_of(self.raw())
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DataType {
        self.raw().dtype
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        count_of(self.raw())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copy elements in, row-major.
    pub fn copy_from<T: Element>(&self, elements: &[T]) -> Result<()> {
        write(self.raw(), elements)
    }

    /// Copy the elements out.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        read(self.raw())
    }

    /// The elements themselves.
    ///
    /// # Safety
    /// While the slice lives nothing may write the memory: no clone, no function that was given it,
    /// no run of the model that it belongs to.
    pub unsafe fn as_slice<T: Element>(&self) -> Result<&[T]> {
        match place_of::<T>(self.raw())? {
            _ if self.is_empty() => Ok(&[]),
            data => Ok(unsafe { std::slice::from_raw_parts(data, self.len()) }),
        }
    }
}

/// The extents of a tensor.
pub(crate) fn shape_of(raw: &DLTensor) -> &[i64] {
    match raw.ndim {
        0 => &[],
        count => unsafe { std::slice::from_raw_parts(raw.shape, count as usize) },
    }
}

fn count_of(raw: &DLTensor) -> usize {
    shape_of(raw)
        .iter()
        .map(|&extent| extent as usize)
        .product()
}

/// Where the elements lie, if they are of this type, on the processor and in one piece.
fn place_of<T: Element>(raw: &DLTensor) -> Result<*mut T> {
    if raw.dtype != T::DTYPE || raw.device.device_type != 1 {
        return Err(Error::new(
            "TypeError",
            format!(
                "the array is {} on {:?}, not {}",
                raw.dtype,
                raw.device,
                T::DTYPE
            ),
        ));
    }
    if unsafe { ffi::slw_tensor_is_contiguous(raw) } == 0 {
        return Err(Error::new(
            "ValueError",
            "the array is not in one piece: copy it first",
        ));
    }
    Ok(unsafe { raw.data.cast::<u8>().add(raw.byte_offset as usize).cast() })
}

/// Copy elements into a tensor.
pub(crate) fn write<T: Element>(raw: &DLTensor, elements: &[T]) -> Result<()> {
    let to = place_of::<T>(raw)?;
    let (shape, count) = (shape_of(raw), count_of(raw));
    if count != elements.len() {
        return Err(Error::new(
            "ValueError",
            format!(
                "shape {:?} has {} elements, not {}",
                shape,
                count,
                elements.len()
            ),
        ));
    }
    if count > 0 {
        unsafe { std::ptr::copy(elements.as_ptr(), to, count) };
    }
    Ok(())
}

/// Copy elements out of a tensor.
pub(crate) fn read<T: Element>(raw: &DLTensor) -> Result<Vec<T>> {
    let from = place_of::<T>(raw)?;
    let count = count_of(raw);
    let mut copied = Vec::new();
    copied
        .try_reserve_exact(count)
        .map_err(|_| Error::new("MemoryError", format!("no memory for {} elements", count)))?;
    if count > 0 {
        unsafe {
            std::ptr::copy(from, copied.as_mut_ptr(), count);
            copied.set_len(count);
        }
    }
    Ok(copied)
}

impl fmt::Debug for Tensor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Tensor({:?}, {})", self.shape(), self.dtype())
    }
}
