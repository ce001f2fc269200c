"""The network of a mixture of experts: a router, its matrices, an expert for all tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from slipway import relay
from slipway.errors import ModelError
from slipway.llm.config import Experts, ModelConfig
from slipway.llm.weights import Matrix, Weights, joined, quantised
from slipway.relay.expr import Expr


class MixtureLayers(ABC):
    """What a network with a mixture of experts is made of, beside its other layers."""

    config: ModelConfig
    weights: Weights
    quantise: str
    count: Any

    @abstractmethod
    def product(self, x: Expr, matrix: Matrix, bias: str = "") -> Any:
        """Multiply by a matrix, with the bias of that name where the model has it."""

    @abstractmethod
    def scaled(self, x: Expr, scale: float) -> Any:
        """Return `x` times a number."""

    @abstractmethod
    def feed_forward(self, prefix: str, x: Expr, size: int = 0) -> Any:
        """Return the products of a feed-forward network with `size` elements inside."""

    @abstractmethod
    def activated(self, prefix: str, x: Expr) -> Any:
        """Return the activation of `x`."""

    def mixture(self, prefix: str, x: Expr) -> Any:
        """Return the sum of the outputs of a token's experts, by their scores."""
        config, weights = self.config, self.weights
        experts = config.experts
        assert experts is not None  # a layer is sparse
        chosen, shares = self._routed(experts, prefix, x)
        rows = relay.reshape(x, (self.count, 1, config.hidden))
        made = self._inner(experts, prefix, rows, chosen)
        down = self._matrices(prefix, "down_proj", experts.count,
                         config.hidden, experts.feed_forward)  # fmt: skip
        made = self._experts_product(made, down, experts.count, chosen)
        shares = relay.reshape(shares, (self.count, experts.used, 1))
        total = self.scaled(relay.sum(relay.multiply(made, shares), axis=1), experts.scale)
        if not experts.shared:
            return total
        for_all = self.feed_forward(f"{prefix}shared_experts.", x, experts.shared)
        if f"{prefix}shared_expert_gate.weight" in weights:
            gate = weights.stack(f"{prefix}shared_expert_gate.weight", 1, 1, config.hidden)
            for_all = relay.multiply(for_all, relay.sigmoid(self.product(x, gate)))
        return relay.add(total, for_all)

    def _routed(self, experts: Experts, prefix: str, x: Expr) -> tuple[Any, Any]:
        """Return the experts of each token (n, used), and their shares of the sum."""
        weights = self.weights
        router = weights.matrix(f"{prefix}gate.weight", experts.count, self.config.hidden)
        logits = self.product(x, router)  # never in fewer bits, as it chooses
        softmax = experts.scores == "softmax"
        scores = relay.nn.softmax(logits, axis=-1) if softmax else relay.sigmoid(logits)
        correction = f"{prefix}gate.e_score_correction_bias"
        if correction in weights:  # which chooses, and has no part in the sum
            bias = np.asarray(weights.read(correction), np.float32).reshape(1, -1)
            chosen = relay.topk(scores + relay.const(bias), experts.used, -1, "indices")
            shares = relay.gather(scores, 1, chosen)
        else:
            shares, chosen = relay.topk(scores, experts.used, -1, "both")
        if experts.normalised:
            whole = relay.sum(shares, axis=-1, keepdims=True)
            shares = relay.divide(shares, whole + relay.const(np.float32(1e-20)))
        return chosen, shares

    def _inner(self, experts: Experts, prefix: str, rows: Expr, chosen: Expr) -> Any:
        """Return what the experts multiply with their last matrices."""
        hidden, size = self.config.hidden, experts.feed_forward
        joint = f"{prefix}experts.gate_up_proj"
        if joint in self.weights:
            whole = self._matrices(prefix, "gate_up_proj", experts.count, 2 * size, hidden)
            parts = relay.split(
                self._experts_product(rows, whole, experts.count, chosen), 2, axis=2
            )
            return self.activated(prefix, parts[0]) * parts[1]
        gate, up = (
            self._matrices(prefix, name, experts.count, size, hidden)
            for name in ("gate_proj", "up_proj")
        )
        inner = [self._experts_product(rows, one, experts.count, chosen) for one in (gate, up)]
        return self.activated(prefix, inner[0]) * inner[1]

    def _experts_product(self, rows: Expr, matrix: Matrix, count: int, chosen: Expr) -> Any:
        data = matrix.data.reshape(count, -1, matrix.data.shape[1])
        return relay.nn.expert_dense(rows, relay.const(data), chosen, matrix.format)

    def _matrices(self, prefix: str, name: str, count: int, rows: int, columns: int) -> Matrix:
        """Return the matrices of all experts, one below the other."""
        weights: Weights = self.weights
        for whole in (f"{prefix}experts.{name}", f"{prefix}experts.{name}.weight"):
            if whole in weights:
                return quantised(weights.stack(whole, count, rows, columns), self.quantise)
        parts = (weights.matrix(f"{prefix}experts.{i}.{name}.weight", rows, columns)
                 for i in range(count))  # fmt: skip
        made = joined([quantised(part, self.quantise) for part in parts])
        if made is None:
            raise ModelError(
                f"the experts' weights {prefix}experts.0.{name} and those after it are of several "
                "formats: quantise the file again, with one for all of a layer's"
            )
        return made
