"""The table of rules. Each is a small function in a file of its family; docs/finding-kinds.md explains each kind.

Used within `findings`.
"""

from __future__ import annotations

from torchgraph_explorer.findings.rules.activations import activation_before_loss
from torchgraph_explorer.findings.rules.attention import attention_logits_growing
from torchgraph_explorer.findings.rules.batch_softmax import softmax_over_batch
from torchgraph_explorer.findings.rules.batches import repeated_batch
from torchgraph_explorer.findings.rules.beginning import bad_init_scale, input_not_normalised, zero_init
from torchgraph_explorer.findings.rules.betas import betas_swapped
from torchgraph_explorer.findings.rules.branches import imbalanced_branches
from torchgraph_explorer.findings.rules.broadcast import targets_broadcast
from torchgraph_explorer.findings.rules.chance import not_falling
from torchgraph_explorer.findings.rules.copied import label_smoothing_extreme
from torchgraph_explorer.findings.rules.copies import identical_modules
from torchgraph_explorer.findings.rules.depth import vanishing_gradient
from torchgraph_explorer.findings.rules.dimensions import positions_over_batch, softmax_wrong_dimension
from torchgraph_explorer.findings.rules.experts import expert_imbalance
from torchgraph_explorer.findings.rules.growth import exploding_activation, exploding_gradient, overflow_ahead
from torchgraph_explorer.findings.rules.inputs import constant_input, input_outlier
from torchgraph_explorer.findings.rules.last_dropout import dropout_on_output
from torchgraph_explorer.findings.rules.latents import posterior_collapse
from torchgraph_explorer.findings.rules.linear import missing_nonlinearity
from torchgraph_explorer.findings.rules.loop import (
    clipping_after_step,
    clipping_always,
    gradients_cleared,
    no_zero_grad,
    weight_decay_dominates,
)
from torchgraph_explorer.findings.rules.loss import loss_diverging
from torchgraph_explorer.findings.rules.means import loss_of_mean
from torchgraph_explorer.findings.rules.missing_log import taken_for_others
from torchgraph_explorer.findings.rules.modes import batch_of_one, normalisation_in_eval, training_in_eval_mode
from torchgraph_explorer.findings.rules.nonfinite import nan
from torchgraph_explorer.findings.rules.normalised import normalised_over_batch
from torchgraph_explorer.findings.rules.norms import norm_momentum, normalised_alone
from torchgraph_explorer.findings.rules.one_class import one_class_batches
from torchgraph_explorer.findings.rules.one_sample import samples_left_out
from torchgraph_explorer.findings.rules.optimizer import frozen_by_accident, not_in_optimizer
from torchgraph_explorer.findings.rules.outweighed import loss_outweighed
from torchgraph_explorer.findings.rules.padding import padding_mask_inverted
from torchgraph_explorer.findings.rules.participation import no_gradient, unused_module
from torchgraph_explorer.findings.rules.precision import update_lost_to_rounding
from torchgraph_explorer.findings.rules.rates import learning_rate_gone
from torchgraph_explorer.findings.rules.recreated import optimizer_recreated
from torchgraph_explorer.findings.rules.redrawn import weights_redrawn
from torchgraph_explorer.findings.rules.rule import Rule
from torchgraph_explorer.findings.rules.scales import targets_not_scaled
from torchgraph_explorer.findings.rules.sequences import batch_as_sequence
from torchgraph_explorer.findings.rules.sharp_attention import attention_saturated
from torchgraph_explorer.findings.rules.signs import loss_negated, loss_unbounded
from torchgraph_explorer.findings.rules.single_class import single_class
from torchgraph_explorer.findings.rules.single_units import collapse, dead_units, symmetric_units
from torchgraph_explorer.findings.rules.spike import loss_spike
from torchgraph_explorer.findings.rules.states import state_detached
from torchgraph_explorer.findings.rules.targets import logits_before_nll, targets_out_of_range
from torchgraph_explorer.findings.rules.ties import broken_tie, teacher_trained
from torchgraph_explorer.findings.rules.tokens import answers_in_inputs, future_visible, padding_in_loss, shifted_twice
from torchgraph_explorer.findings.rules.twice import updated_twice
from torchgraph_explorer.findings.rules.undone import update_undone
from torchgraph_explorer.findings.rules.units import (
    constant_output,
    dropout_extreme,
    saturated_activation,
)
from torchgraph_explorer.findings.rules.untrained import frozen_untrained
from torchgraph_explorer.findings.rules.updates import loss_scale_loop, update_too_large, update_too_small
from torchgraph_explorer.findings.rules.views import view_for_transpose
from torchgraph_explorer.findings.rules.weighted import class_left_out, class_weights_inverted

RULES: dict[str, Rule] = {
    "nan": nan,
    "overflow-ahead": overflow_ahead,
    "exploding-gradient": exploding_gradient,
    "exploding-activation": exploding_activation,
    "vanishing-gradient": vanishing_gradient,
    "dead-units": dead_units,
    "saturated-activation": saturated_activation,
    "constant-output": constant_output,
    "dropout-extreme": dropout_extreme,
    "zero-init": zero_init,
    "bad-init-scale": bad_init_scale,
    "input-not-normalised": input_not_normalised,
    "constant-input": constant_input,
    "input-outlier": input_outlier,
    "no-gradient": no_gradient,
    "state-detached": state_detached,
    "unused-module": unused_module,
    "not-in-optimizer": not_in_optimizer,
    "update-too-small": update_too_small,
    "update-too-large": update_too_large,
    "loss-scale-loop": loss_scale_loop,
    "loss-not-falling": not_falling,
    "loss-diverging": loss_diverging,
    "loss-spike": loss_spike,
    "repeated-batch": repeated_batch,
    "imbalanced-branches": imbalanced_branches,
    "expert-imbalance": expert_imbalance,
    "softmax-before-loss": taken_for_others,
    "softmax-over-batch": softmax_over_batch,
    "softmax-wrong-dimension": softmax_wrong_dimension,
    "positions-over-batch": positions_over_batch,
    "normalised-over-batch": normalised_over_batch,
    "activation-before-loss": activation_before_loss,
    "logits-before-nll": logits_before_nll,
    "targets-out-of-range": targets_out_of_range,
    "targets-not-scaled": targets_not_scaled,
    "targets-broadcast": targets_broadcast,
    "loss-of-mean": loss_of_mean,
    "dropout-on-output": dropout_on_output,
    "loss-negated": loss_negated,
    "loss-unbounded": loss_unbounded,
    "loss-outweighed": loss_outweighed,
    "one-class-batches": one_class_batches,
    "single-class": single_class,
    "posterior-collapse": posterior_collapse,
    "batch-as-sequence": batch_as_sequence,
    "view-for-transpose": view_for_transpose,
    "future-visible": future_visible,
    "answers-in-inputs": answers_in_inputs,
    "targets-shifted-twice": shifted_twice,
    "padding-in-loss": padding_in_loss,
    "padding-mask-inverted": padding_mask_inverted,
    "label-smoothing-extreme": label_smoothing_extreme,
    "class-weights-inverted": class_weights_inverted,
    "class-left-out": class_left_out,
    "samples-left-out": samples_left_out,
    "attention-logits-growing": attention_logits_growing,
    "attention-saturated": attention_saturated,
    "update-lost-to-rounding": update_lost_to_rounding,
    "collapse": collapse,
    "symmetric-units": symmetric_units,
    "identical-modules": identical_modules,
    "no-zero-grad": no_zero_grad,
    "gradients-cleared": gradients_cleared,
    "frozen-by-accident": frozen_by_accident,
    "frozen-untrained": frozen_untrained,
    "normalisation-in-eval": normalisation_in_eval,
    "training-in-eval-mode": training_in_eval_mode,
    "batch-of-one": batch_of_one,
    "norm-momentum": norm_momentum,
    "normalised-alone": normalised_alone,
    "clipping-always": clipping_always,
    "clipping-after-step": clipping_after_step,
    "weight-decay-dominates": weight_decay_dominates,
    "learning-rate-gone": learning_rate_gone,
    "betas-swapped": betas_swapped,
    "optimizer-recreated": optimizer_recreated,
    "updated-twice": updated_twice,
    "update-undone": update_undone,
    "weights-redrawn": weights_redrawn,
    "missing-nonlinearity": missing_nonlinearity,
    "broken-tie": broken_tie,
    "teacher-trained": teacher_trained,
}
"""By the kind of finding that the rule yields."""
