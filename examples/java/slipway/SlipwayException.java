package slipway;

/** What went wrong: the class of the error as Python has it, and a message that says what to do. */
public final class SlipwayException extends RuntimeException {
  private static final long serialVersionUID = 1L;
  private final String kind;

  public SlipwayException(String kind, String message) {
    super(kind + ": " + message);
    this.kind = kind;
  }

  public String kind() {
    return kind;
  }
}
