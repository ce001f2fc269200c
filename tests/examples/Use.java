import java.util.Arrays;
import slipway.Model;
import slipway.SlipwayException;

/** A model's output, then one error for each mistake; test_java.py runs it. */
public final class Use {
  private static void refused(Runnable action) {
    try {
      action.run();
      System.out.println("nothing was refused");
    } catch (SlipwayException error) {
      System.out.println(error.kind() + " | " + error.getMessage().split("\n")[0]);
    }
  }

  public static void main(String[] arguments) {
    refused(() -> new Model(arguments[0] + ".none"));
    refused(() -> new Model(null));
    Model model = new Model(arguments[0]);
    float[] pixels = new float[192];
    Arrays.fill(pixels, 1.0f);
    model.setInput(model.inputNames()[0], pixels);
    model.run();
    System.out.println(Arrays.toString(model.inputShape(0)) + Arrays.toString(model.outputShape(0)));
    System.out.println(Arrays.toString(model.getFloats(0)));
    System.out.println(model.getBytes(0).length);
    refused(() -> model.setInput("none", pixels));
    refused(() -> model.setInput("input", new float[3]));
    refused(() -> model.setInput("input", (float[]) null));
    refused(() -> model.getFloats(7));
    refused(() -> model.setInput("input", new byte[192], new long[] {1, 3, 8, 8}));
    refused(() -> model.setInput("input", pixels, new long[17]));
    System.out.println(model.inputType(0) + " " + model.outputNames().length);
    model.close();
    model.close();
    refused(model::run);
    if (arguments.length > 1) {
      sizes(arguments[1]);
    }
  }

  /** Bytes of one to four rows, one after the other, and those that are above 3. */
  private static void sizes(String path) {
    Model model = new Model(path);
    refused(() -> model.setInput("x", new float[2]));
    for (int rows = 1; rows < 6; rows += 2) {
      byte[] bytes = new byte[2 * rows];
      for (int i = 0; i < bytes.length; i++) {
        bytes[i] = (byte) i;
      }
      long[] shape = {rows, 2};
      if (rows < 5) {
        model.setInput("x", bytes, shape);
        model.run();
        System.out.println(Arrays.toString(model.outputShape(0)) + Arrays.toString(model.getBytes(0)));
      } else {
        refused(() -> model.setInput("x", bytes, shape));
      }
    }
    model.resetStates();
    model.close();
  }
}
