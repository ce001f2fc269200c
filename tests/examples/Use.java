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
    model.close();
    model.close();
    refused(model::run);
  }
}
