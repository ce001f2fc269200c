package slipway;

/**
 * A model that Slipway exported as .so or .tar, on this machine or on Android.
 *
 * <pre>
 *   try (Model model = new Model("model.tar")) {
 *     model.setInput("input", pixels);
 *     model.run();
 *     float[] scores = model.getFloats(0);
 *   }
 * </pre>
 *
 * One thread at a time uses a model.
 */
public final class Model implements AutoCloseable {
  static {
    System.loadLibrary("slipway_jni");
  }

  private long handle;

  /** Load a model; fails with a SlipwayException that says what is wrong with the file. */
  public Model(String path) {
    handle = open(path);
  }

  public synchronized String[] inputNames() {
    return inputNames(checked());
  }

  public synchronized String[] outputNames() {
    return outputNames(checked());
  }

  public synchronized long[] inputShape(int index) {
    return shape(checked(), index, true);
  }

  /** What the last run gave it, where that decides a size, and before the first one the largest. */
  public synchronized long[] outputShape(int index) {
    return shape(checked(), index, false);
  }

  /** The type of an input's elements, as "float32". */
  public synchronized String inputType(int index) {
    return type(checked(), index, true);
  }

  public synchronized String outputType(int index) {
    return type(checked(), index, false);
  }

  /** Copy the elements of an input, row-major; null for the name means the only input. */
  public synchronized void setInput(String name, float[] values) {
    setFloats(checked(), name, values, null);
  }

  /** The same for elements of any type, as the bytes that this machine has for them. */
  public synchronized void setInput(String name, byte[] bytes) {
    setBytes(checked(), name, bytes, null);
  }

  /** The same, and the shape that decides the open sizes; inputs that share one are all to be set. */
  public synchronized void setInput(String name, float[] values, long[] shape) {
    setFloats(checked(), name, values, shape);
  }

  public synchronized void setInput(String name, byte[] bytes, long[] shape) {
    setBytes(checked(), name, bytes, shape);
  }

  /** What lives from run to run begins anew, as when the model was loaded. */
  public synchronized void resetStates() {
    resetStates(checked());
  }

  public synchronized void run() {
    run(checked());
  }

  /** Copy a float32 output out. */
  public synchronized float[] getFloats(int index) {
    return getFloats(checked(), index);
  }

  /** Copy the bytes of an output of any type out. */
  public synchronized byte[] getBytes(int index) {
    return getBytes(checked(), index);
  }

  @Override
  public synchronized void close() {
    close(handle);
    handle = 0;
  }

  private long checked() {
    if (handle == 0) {
      throw new SlipwayException("ValueError", "this model was closed");
    }
    return handle;
  }

  private static native long open(String path);

  private static native void close(long handle);

  private static native String[] inputNames(long handle);

  private static native String[] outputNames(long handle);

  private static native long[] shape(long handle, int index, boolean isInput);

  private static native String type(long handle, int index, boolean isInput);

  private static native void setFloats(long handle, String name, float[] values, long[] shape);

  private static native void setBytes(long handle, String name, byte[] bytes, long[] shape);

  private static native void resetStates(long handle);

  private static native void run(long handle);

  private static native float[] getFloats(long handle, int index);

  private static native byte[] getBytes(long handle, int index);
}
