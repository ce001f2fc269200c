//! Functions, arrays and models; the model is named by SLIPWAY_TEST_MODEL (a small convolution of
//! 1x3x8x8 to 4 scores), and left out where that is not set.
#![cfg(feature = "std")]

use slipway_rt::{call, global_names, register, register_packed, remove};
use slipway_rt::{Error, Function, Model, Module, Result, Tensor, Value};

fn error_of<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.expect_err("a mistake went unnoticed").to_string()
}

#[test]
fn functions_are_registered_found_and_called() -> Result<()> {
    register("rust.add", |a: i64, b: i64| a + b)?;
    let add = Function::get("rust.add")?;
    assert_eq!(i64::try_from(call!(add, 1, 2)?)?, 3);
    let taken = error_of(register("rust.add", |a: i64| a));
    assert!(
        taken.contains("'rust.add' is registered already"),
        "{}",
        taken
    );
    Function::new(|a: i64| -a).register("rust.add", true)?;
    assert_eq!(i32::try_from(call!(Function::get("rust.add")?, 7)?)?, -7);
    assert_eq!(
        i64::try_from(call!(add, 1, 2)?)?,
        3,
        "who holds the old one keeps it"
    );
    assert!(global_names()?.contains(&"rust.add".to_string()));
    remove("rust.add")?;
    assert!(error_of(Function::get("rust.add").map(|_| ())).contains("no global function"));
    assert!(error_of(remove("rust.add")).contains("no global function"));
    Ok(())
}

#[test]
fn values_of_every_kind_pass() -> Result<()> {
    let echo = Function::new(|value: Value| value);
    let long = "a text that is longer than eight bytes, \u{fc}ml\u{e4}ut\0 and on";
    assert_eq!(String::try_from(call!(echo, long)?)?, long);
    assert_eq!(String::try_from(call!(echo, "")?)?, "");
    assert_eq!(
        Vec::<u8>::try_from(call!(echo, &b"\0\xff"[..])?)?,
        b"\0\xff"
    );
    assert_eq!(f64::try_from(call!(echo, 2.5)?)?, 2.5);
    assert!(bool::try_from(call!(echo, true)?)?);
    <()>::try_from(call!(echo, ())?)?;
    let tensor = Tensor::new(&[1i32, 2, 3, 4], &[2, 2])?;
    let same = Tensor::try_from(call!(echo, &tensor)?)?;
    same.copy_from(&[5i32, 6, 7, 8])?;
    assert_eq!(tensor.to_vec::<i32>()?, [5, 6, 7, 8]);
    let twice = Function::new(|f: Function, x: i64| -> Result<Value> { call!(f, call!(f, x)?) });
    let negate = Function::new(|x: i64| -x);
    assert_eq!(i64::try_from(call!(twice, &negate, 4)?)?, 4);
    let sum = Function::packed(|args| {
        let mut sum = 0;
        for arg in args {
            sum += i64::try_from(arg.value()?)?;
        }
        Ok(sum.into())
    });
    let many: Vec<Value> = (0..100).map(Value::Int).collect();
    assert_eq!(i64::try_from(sum.call(&many)?)?, 4950);
    Ok(())
}

#[test]
fn mistakes_are_errors() -> Result<()> {
    let add = Function::new(|a: i32, b: i32| a + b);
    assert_eq!(
        error_of(call!(add, 1)),
        "TypeError: the function takes 2 arguments, got 1"
    );
    assert_eq!(
        error_of(call!(add, 1, "x")),
        "TypeError: argument 1: expected int, got str"
    );
    let large = error_of(call!(add, 1i64 << 40, 2));
    assert_eq!(
        large,
        "OverflowError: argument 0: 1099511627776 does not fit into i32"
    );
    let fails = Function::new(|| -> Result<i64> { Err(Error::new("KeyError", "no such key")) });
    assert_eq!(error_of(call!(fails)), "KeyError: no such key");
    let panics = Function::new(|x: i64| -> i64 { panic!("at {}", x) });
    assert_eq!(
        error_of(call!(panics, 3)),
        "RuntimeError: a function of Rust panicked: at 3"
    );
    let caught = Function::new(move |f: Function| match call!(f, 3) {
        Err(error) => error.kind,
        Ok(_) => "nothing".to_string(),
    });
    assert_eq!(String::try_from(call!(caught, panics)?)?, "RuntimeError");
    assert!(error_of(Tensor::zeros::<f32>(&[-1])).starts_with("ValueError"));
    assert!(error_of(Tensor::zeros::<f32>(&[1 << 50])).starts_with("MemoryError"));
    assert!(error_of(Tensor::zeros::<f32>(&[1 << 62, 16])).starts_with("ValueError"));
    let tensor = Tensor::new(&[1.0f32; 6], &[2, 3])?;
    assert!(error_of(tensor.to_vec::<f64>()).starts_with("TypeError"));
    assert!(error_of(tensor.copy_from(&[1.0f32])).contains("has 6 elements, not 1"));
    assert!(error_of(Tensor::new(&[1u8], &[2])).contains("has 2 elements, not 1"));
    assert!(error_of(Function::get("a\0b").map(|_| ())).starts_with("ValueError"));
    assert!(error_of(Module::load("no/such/file.so").map(|_| ())).starts_with("FileNotFoundError"));
    assert!(error_of(Module::load("Cargo.toml").map(|_| ())).starts_with("ArtifactError"));
    assert!(error_of(Model::load("Cargo.toml").map(|_| ())).starts_with("ArtifactError"));
    Ok(())
}

#[test]
fn closures_go_when_nobody_holds_them() -> Result<()> {
    use std::sync::Arc;
    let shared = Arc::new(());
    let inside = Arc::clone(&shared);
    let count = Function::new(move || Arc::strong_count(&inside) as i64);
    let again = count.clone();
    drop(count);
    assert_eq!(i64::try_from(call!(again)?)?, 2);
    drop(again);
    assert_eq!(Arc::strong_count(&shared), 1);
    Ok(())
}

#[test]
fn functions_are_called_from_other_threads() -> Result<()> {
    register("rust.threads", |x: i64| x + 1)?;
    register_packed("rust.fill", |args| {
        args[0].copy_from(&[7.0f32; 4]).map(Value::from)
    })?;
    let threads: Vec<_> = (0..4i64)
        .map(|i| {
            std::thread::spawn(move || -> Result<i64> {
                let tensor = Tensor::zeros::<f32>(&[4])?;
                call!(Function::get("rust.fill")?, &tensor)?;
                assert_eq!(tensor.to_vec::<f32>()?, [7.0; 4]);
                i64::try_from(call!(Function::get("rust.threads")?, i)?)
            })
        })
        .collect();
    for (i, thread) in threads.into_iter().enumerate() {
        assert_eq!(thread.join().expect("no panic")?, i as i64 + 1);
    }
    Ok(())
}

#[test]
fn a_model_runs() -> Result<()> {
    let path = match std::env::var("SLIPWAY_TEST_MODEL") {
        Ok(path) => path,
        Err(_) => return Ok(()),
    };
    let ones = [1.0f32; 3 * 8 * 8];
    let mut model = Model::load(&path)?;
    assert_eq!(model.inputs()[0].name, "input");
    assert_eq!(model.inputs()[0].shape, [1, 3, 8, 8]);
    assert_eq!(model.output_shape(0)?, [1, 4]);
    model.set_input("input", &ones)?;
    model.run()?;
    let scores = model.output::<f32>(0)?;
    println!("scores {:?}", scores);
    assert!((scores.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    assert!(error_of(model.set_input("inputs", &ones)).contains("Its inputs are: 'input'"));
    assert!(error_of(model.set_input("input", &ones[1..])).contains("which takes 768 bytes"));
    assert!(error_of(model.set_input("input", &[1i32; 192])).starts_with("ExecutionError"));
    assert!(error_of(model.output::<f32>(1)).starts_with("IndexError"));
    assert!(error_of(model.output::<u8>(0)).starts_with("TypeError"));

    let library = Module::load(&path)?;
    assert_eq!(library.type_key(), "library");
    let input = Tensor::new(&ones, &[1, 3, 8, 8])?;
    let direct = Tensor::try_from(call!(library.function("default")?, &input)?)?;
    assert_eq!(direct.to_vec::<f32>()?, scores);
    let executor = Module::try_from(call!(library.function("default")?)?)?;
    drop(library);
    call!(executor.function("set_input")?, "input", input)?;
    call!(executor.function("run")?)?;
    let output = Tensor::try_from(call!(executor.function("get_output")?, 0)?)?;
    drop(executor);
    assert_eq!(output.to_vec::<f32>()?, scores);
    let missing = Module::load(&path)?.function("nothing").map(|_| ());
    assert!(error_of(missing).contains("it has: default"));

    let moved = std::thread::spawn(move || -> Result<Vec<f32>> {
        model.run()?;
        model.output(0)
    });
    assert_eq!(moved.join().expect("no panic")?, scores);
    Ok(())
}

/// The model named by SLIPWAY_TEST_SIZES: one to four rows of "x" and "gain" give their products,
/// the positive ones and twice their sum, which is kept.
#[test]
fn sizes_and_states_of_runs() -> Result<()> {
    let path = match std::env::var("SLIPWAY_TEST_SIZES") {
        Ok(path) => path,
        Err(_) => return Ok(()),
    };
    let values = [1.0f32, -2.0, 3.0, 4.0, 5.0, -6.0];
    let ones = [1.0f32; 15];
    let mut model = Model::load(path)?;
    for (rows, found) in [(2, 4), (1, 2)] {
        let count = 3 * rows;
        model.set_input_shaped("x", &values[..count], &[rows as i64, 3])?;
        if rows == 1 {
            assert!(error_of(model.run()).contains("'gain' of shape (n, 3) does not have"));
        }
        model.set_input("gain", &ones[..count])?;
        model.run()?;
        assert_eq!(model.output_shape(0)?, [rows as i64, 3]);
        assert_eq!(model.output::<f32>(0)?, values[..count]);
        assert_eq!(model.output_shape(1)?, [found]);
        assert_eq!(model.output::<f32>(1)?[0], [3.0, 5.0][rows - 1]);
    }
    assert_eq!(model.output::<f32>(2)?, [12.0, 2.0, 0.0], "of both runs");
    model.reset_states()?;
    model.run()?;
    assert_eq!(model.output::<f32>(2)?, [2.0, -4.0, 6.0]);
    assert!(error_of(model.set_input_shaped("x", &ones, &[5, 3])).contains("n is 1 to 4"));
    assert!(error_of(model.set_input_shaped("x", &ones, &[4, 3])).contains("takes 48 bytes"));
    assert!(error_of(model.set_input_shaped("x", &[1i32; 3], &[1, 3])).contains("not int32"));
    assert_eq!(model.inputs().len(), 2, "a state is no input");
    assert!(!model.output_name(1)?.is_empty());
    Ok(())
}
