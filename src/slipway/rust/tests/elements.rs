//! Elements that Rust has no type for; the model is named by SLIPWAY_TEST_KINDS (float16 `half` and
//! bool `flag` of 3 each, to their double and their opposite), and left out where that is not set.

use slipway_rt::{Bf16, Bool8, DataType, Element, F16};

#[test]
fn every_half_is_itself() {
    for bits in 0..=u16::MAX {
        let number = f32::from(F16(bits));
        let again = F16::from(number);
        assert!(again.0 == bits || number.is_nan() && bits & 0x7fff > 0x7c00);
        let wide = f32::from(Bf16(bits));
        assert!(Bf16::from(wide).0 == bits || wide.is_nan() && bits & 0x7fff > 0x7f80);
        if number.is_nan() {
            assert!(f32::from(again).is_nan());
        }
    }
    assert_eq!(f32::from(F16(0x3c01)), 1.000_976_6);
    assert_eq!(f32::from(F16(1)), 1.0 / 16_777_216.0);
    assert_eq!(f32::from(F16(0xfbff)), -65504.0);
}

#[test]
fn numbers_between_go_to_the_nearest_and_ties_to_even() {
    for bits in 0..0x7bff_u16 {
        let (low, high) = (f32::from(F16(bits)), f32::from(F16(bits + 1)));
        let middle = (low + high) / 2.0; // exact in 24 bits
        assert_eq!(F16::from(middle).0, bits + (bits & 1));
        let (below, above) = (middle.to_bits() - 1, middle.to_bits() + 1);
        assert_eq!(F16::from(f32::from_bits(below)).0, bits);
        assert_eq!(F16::from(-f32::from_bits(above)).0, 0x8000 | (bits + 1));
    }
    assert_eq!(F16::from(65519.9).0, 0x7bff);
    assert_eq!(F16::from(65520.0).0, 0x7c00);
    assert_eq!(F16::from(f32::MIN_POSITIVE / 8.0).0, 0);
    assert_eq!(Bf16::from(1.003_906_3).0, 0x3f80);
    assert_eq!(Bf16::from(1.011_718_8).0, 0x3f82);
    assert_eq!(Bf16::from(f32::MAX).0, 0x7f80);
}

#[test]
fn types_say_their_names() {
    let names = |dtypes: &[DataType]| -> Vec<String> {
        dtypes.iter().map(|dtype| dtype.to_string()).collect()
    };
    let found = names(&[F16::DTYPE, Bf16::DTYPE, Bool8::DTYPE, u8::DTYPE, f64::DTYPE]);
    assert_eq!(found, ["float16", "bfloat16", "bool", "uint8", "float64"]);
    let four = DataType {
        lanes: 4,
        ..i8::DTYPE
    };
    assert_eq!(four.to_string(), "int8x4");
    assert!(bool::from(Bool8(7)) && !bool::from(Bool8::from(false)));
}

#[cfg(feature = "std")]
#[test]
fn a_model_of_halves_and_truth_values() -> slipway_rt::Result<()> {
    use slipway_rt::{call, Device, Model, Module, Tensor};

    let path = match std::env::var("SLIPWAY_TEST_KINDS") {
        Ok(path) => path,
        Err(_) => return Ok(()),
    };
    let mut model = Model::load(&path)?;
    let halves: Vec<F16> = [1.5, -2.0, 70000.0].iter().map(|&x| F16::from(x)).collect();
    model.set_input("half", &halves)?;
    model.set_input("flag", &[true, false, true].map(Bool8::from))?;
    model.run()?;
    let doubled: Vec<f32> = model.output::<F16>(0)?.into_iter().map(f32::from).collect();
    assert_eq!(doubled, [3.0, -4.0, f32::INFINITY]);
    let opposite: Vec<bool> = model.output::<Bool8>(1)?.into_iter().map(bool::from).collect();
    assert_eq!(opposite, [false, true, false]);
    assert_eq!(model.output_dtype(1)?, Bool8::DTYPE);
    let wrong = model.set_input("half", &[1.0f32; 3]).unwrap_err().to_string();
    assert_eq!(wrong, "ExecutionError: input 'half' is float16, not float32");
    let wrong = model.output::<u16>(0).unwrap_err().to_string();
    assert!(wrong.starts_with("TypeError: the array is float16 on"), "{}", wrong);

    let made = call!(Module::load(&path)?.function("default")?, Device::cpu())?;
    let executor = Module::try_from(made)?;
    call!(executor.function("set_input")?, "half", Tensor::new(&halves, &[3])?)?;
    Ok(())
}
