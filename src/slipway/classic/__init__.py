"""Names of classic TVM: modules divided otherwise, and why a name is not there."""
