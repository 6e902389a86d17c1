"""What only the live training knows of a step."""

from __future__ import annotations

from dataclasses import dataclass

from torchgraph_explorer.schema.words import OperationKind, OriginKind


@dataclass(frozen=True, slots=True)
class ParameterGroup:
    """A parameter group of an optimizer that was about to make a step's update.

    Attributes:
        optimizer: The optimizer's name, as in `StepFacts.optimizers`.
        learning_rate: `lr`; None if it is not a number in host memory.
        weight_decay: `weight_decay`; None likewise.
        is_decoupled: The decay is applied to the weights, as AdamW does, and not added to the gradient.
        parameters: Names of those of the model, as in `named_parameters()`; at most 1000.
        betas: `betas`, as Adam has them; None if they are not two numbers in host memory.
        is_maximising: `maximize`: updates go up the gradient.
    """

    optimizer: str
    learning_rate: float | None
    weight_decay: float | None
    is_decoupled: bool
    parameters: tuple[str, ...]
    betas: tuple[float, float] | None = None
    is_maximising: bool = False


@dataclass(frozen=True, slots=True)
class Units:
    """The units of one module's output in a step.

    A unit is an index of dimension 1 in the outputs of convolutions and batch, instance and group normalisations, and
    of what follows them; else of the last dimension. Of a large output, all units are looked at, at some positions.

    Attributes:
        module: Qualified name of the module.
        call: Which call of it in the step.
        units: How many it has.
        zero: How many of them were zero wherever they were looked at, in this step and the `steps - 1` before it.
        steps: How many such steps `zero` is of.
        constant: How many had the same value wherever they were looked at, in this step.
        spread: Mean over the units of largest minus smallest value, divided by the mean of the largest magnitudes of
            the `steps`; near 0, all samples are alike.
    """

    module: str
    call: int
    units: int
    zero: int
    steps: int
    constant: int
    spread: float


@dataclass(frozen=True, slots=True)
class EqualRows:
    """Rows of a parameter, which are the weights of a unit each, that are the same as another row.

    Attributes:
        parameter: Name, as in `named_parameters()`.
        rows: How many rows it has.
        equal: How many would have to go so that all that remain differ.
    """

    parameter: str
    rows: int
    equal: int


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation between the modules of a traced step that tells something of the model which no tensor does.

    Or, in some of the first steps, what the model's output and its gradient tell of the loss. What `numbers`, `before`
    and `after` hold depends on `kind`:

    - `made`: the forward pass makes a parameter that gets a gradient, and that neither a module nor an optimizer has.
      `before`: its sizes.
    - `view`: a view or reshape that gives a tensor the sizes that a transpose would. `before` and `after`: its sizes.
    - `attention`: weights of as many queries as keys. `before`: the number of queries and of keys. `numbers`, each in
      the mean over the queries: the weight that a query gives to the keys after its own place; the sum of the squares
      of its weights; how many keys have some weight. If the weights are not known, the first is how much of that a mask
      allows, and the second is NaN; so is the third, unless the mask is one of keys alone.
    - `softmax`: a softmax over the first dimension of a tensor. `before`: the sizes of the tensor.
    - `single`: a softmax over a dimension of one element, which gives 1 whatever it is given. `before`: the sizes of
      the tensor. `numbers`: the dimension.
    - `dropout`: `numbers`: the share that is dropped.
    - `position`: the first rows of a table `[rows, 1, features]` are added to a tensor. `before`: the sizes of the
      tensor; `after`: those of the rows.
    - `crosswise`: weights of attention that sum to one over another dimension than the keys, over which they are
      multiplied by the values. `before`: their sizes. `numbers`: the dimension; how far the sums over the keys are from
      1, in the mean.
    - `shift`: one row is put before the others of each sample, as a beginning before embedded tokens. `before`: how
      many rows there are then.
    - `normalised`: over which dimensions the output is normalised. `numbers`, for each dimension: the largest magnitude
      of the logarithm of the sum of the exponentials over it, and of the sum less 1.
    - `labels`: those of a mean cross entropy. `numbers`: the smallest and the largest of the first label of each
      sample; the largest second one; the smallest of all.
    - `several`: labels of a mean binary cross entropy of probabilities, of which several may be right. `numbers`: the
      largest distance of a label from 0 and 1; the share of the samples whose labels do not sum to one.
    - `second`: at places of an input of tokens, the right answer is the second next token. `numbers`: the share of the
      places.
    - `copied`: the targets of a mean squared error are near one column of the input. `numbers`: the largest distance,
      over the standard deviation of the targets; the column.
    - `ahead`: the targets of a mean squared error are near the numbers of the input at the next place of the sequence.
      `numbers`: the largest distance, over the standard deviation of the targets.
    - `shared`: the targets of the samples are near each other. `numbers`: the largest difference between the targets of
      two samples, over that between the outputs; the mean of the targets.
    - `cancelling`: gradients sum to zero over some dimensions. `numbers`, for the second and the last dimension: the
      largest sum of gradients over it, over the largest gradient; its size. Of three dimensions, also the largest such
      sum over the second one of a view that swaps the sizes of the last two.
    - `flat`: the rows of the output's gradient sum to zero. `numbers`: the largest sum, over the largest gradient.
    - `over`: gradients of a softmax over the samples. `numbers`: their largest distance from its, over the largest.
    - `divergence`: the loss is a divergence of targets from the output. `numbers`: its value and the smallest target,
      if it is a sum, a mean over the samples, and a mean over all elements.
    - `weights`: a cross entropy with a weight for each class. `numbers`: how far the gradients are from those of one,
      over the largest; the largest weight over the smallest, and how many answers are the one of these classes over
      those that are the other; the correlation of the logarithms of weights and of numbers of answers; the share of
      the samples without any gradient; how many answers are class 0, and how many the last class; how many classes are
      answers; the most common class; its share of the answers.
    - `hidden`: places of tokens that the loss leaves out. `numbers`: the share of the places that have no gradient; the
      share of these that have the most common token; of the places with this token, the share that have a gradient; of
      those without one, the share that is between such with one in the sequence.
    - `trailing`: answers at the ends of sequences, as padding is. `numbers`: the share of the answers that are the last
      class and behind the last class, up to the end; the share that are this class elsewhere; of the former, the share
      that are given the last token; the difference of the longest and the shortest of these ends, in places.
    - `ends`: answers where one token ends sequences, as padding does. `numbers`: the share of the answers where it
      follows itself up to the end; the share of the other places that have this token; of those answers, the share that
      are the most common one; the difference of the longest and the shortest of these ends, in places.
    - `across`: over what the loss normalises an output. `numbers`: the largest sum of gradient times output over the
      samples of one feature; over the features of one sample; each over the largest such sum of magnitudes. The largest
      sum of gradients over the samples, over that of magnitudes.
    - `twice`: whether the loss applies a softmax or sigmoid to the output. `numbers`: the largest distance of gradients
      from those of any loss of a softmax's probability of the right class, over the largest gradient; from those of a
      focal loss of logits with one weight for each of two labels, over the gradients themselves; the exponent of that
      loss; how many elements have the more frequent label.
    - `outside`: whether the loss takes for logits what an activation behind the output gives. `numbers`: the
      largest distance of gradients from those of any loss of a softmax's probability of the right class, over the
      largest gradient; the same behind a softmax; this over the standard deviation of its probabilities; the
      distance behind a sigmoid, a tanh and a ReLU; the second number of `twice`; that distance behind a sigmoid; the
      exponent of that loss; how many elements have the more frequent label; the standard deviation of the sigmoids.
    - `two`: the same of an output with two classes. `numbers`: the largest sum of the gradients of the two, over the
      largest gradient; the last three of `twice`, of the difference of the two classes, and the standard deviation of
      that difference; these four behind a softmax.
    - `sign`: whether the loss is the negative of a cross entropy. `numbers`: the largest distance of the gradients from
      those of a cross entropy of classes, over the largest gradient; the smallest and the largest weight of a place in
      it; how many places have a gradient; these three of an element in the negative of a binary cross entropy, if it is
      one; the standard deviation of its logits.
    - `binary`: labels of a mean binary cross entropy, if the output is logits, and if it is probabilities. `numbers`,
      for each: the smallest and the largest; the largest distance of one from the nearer of these two.
    - `unseen`: classes that are no answer of a cross entropy. `numbers`: how many; the sum of their numbers.
    - `clamp`: a tensor that needs a gradient is clamped. `numbers`: the share of its elements beyond a limit.
    - `direction`: vectors that the model gives, one a sample. `numbers`: how much the loss depends on their lengths, as
      the magnitude of the sum of gradient times value over a vector, over the sum of the magnitudes; the mean square of
      the distance of the vectors of length 1 from their mean.
    - `part`: the same of vectors that a part of the model gives, which itself returns only numbers, such as its loss.
    - `cleared`: gradients of backward passes that are gone before the next one. `numbers`: the number of backward
      passes; of those before which gradients were gone.
    - `late`: a gradient that was changed after the last recorded update had used it, and is not in use any more.
      `numbers`: the factor by which it was multiplied, by least squares; the largest difference between the changed
      gradient and that multiple, over the largest element.
    - `policy`: a loss of logarithms of probabilities that a softmax of the output gives, with a weight for each sample,
      as an advantage, and maybe of their entropy. `numbers`: the largest distance of gradients from those of one, over
      the largest gradient; the smallest and the largest weight.
    - `standardised`: a tensor `[samples, features]` that a module is given, or gives. `numbers`: 1 if the module gives
      it; the largest mean of a feature over the samples, and the range of their standard deviations, both over the
      largest deviation and without features with less than a tenth of it; the share of the other features.

    Attributes:
        kind: Which of these it is.
        module: Qualified name of the module within which it was; for answers, the path of the input; for
            directions, `twice`, `outside`, `two` and `sign`, that of the output.
        call: Which call of that module in the step.
        numbers: See above.
        before: See above; empty for other kinds.
        after: See above; empty for other kinds.
    """

    kind: OperationKind
    module: str = ""
    call: int = 0
    numbers: tuple[float, ...] = ()
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenAnswers:
    """How the right answers of a model that gives logits for each token stand to tokens that it was given.

    The right answer is the class whose logit has the most negative gradient. Positions without gradient, as those of
    padding that the loss leaves out, do not count.

    Attributes:
        path: Of the input with the tokens, `[samples, length]`.
        positions: How many were looked at.
        following: Share of them whose answer is the next token of the input.
        same: Share whose answer is the token at the same place.
        padding: Share whose answer is padding, as is that of the place before: the `padding_idx` of an embedding.
    """

    path: str
    positions: int
    following: float
    same: float
    padding: float


@dataclass(frozen=True, slots=True)
class NumberAnswers:
    """What gradients say of the targets of a model's output, of which each sample has one that gets gradient.

    Attributes:
        samples: How many.
        outputs: The most outputs of one sample that get gradient.
        drops: Share of neighbours, in the order of the outputs, of which the larger one has the smaller gradient. None
            have if gradients depend on nothing but the output.
        below: The largest output that is drawn up.
        above: The smallest one that is drawn down.
        spread: Largest minus smallest gradient, over the largest magnitude.
        bend: 1 minus the squared correlation of outputs and gradients, without the largest of these, which an error may
            have bounded: 0 if the others lie on a line.
        rising: Share of the gradients that are above zero, and so draw the output down.
    """

    samples: int
    outputs: int
    drops: float
    below: float
    above: float
    spread: float
    bend: float
    rising: float


@dataclass(frozen=True, slots=True)
class NotFiniteOrigin:
    """What else was NaN or infinite at that moment, before an update could carry it to all parameters.

    Attributes:
        kind: Of a pass whose output is not finite: `input` if an input was not, else `parameter`. Of a backward pass:
            `gradient`, of the parameters.
        names: The inputs' paths, or the parameters' qualified names: the first 200, of gradients the last.
        count: How many were not finite.
        total: Of how many.
    """

    kind: OriginKind
    names: tuple[str, ...]
    count: int
    total: int


@dataclass(frozen=True, slots=True)
class NotFinite:
    """Something that was NaN or infinite in a step that was not recorded.

    Attributes:
        step: The step.
        what: `output`, `gradient`, or `scalar` and its name.
        origin: What else was; None if that was not looked at, as on a GPU, where it would have been waited for.
    """

    step: int
    what: str
    origin: NotFiniteOrigin | None = None


@dataclass(frozen=True, slots=True)
class TrainingFacts:
    """What only the live training knows of a step. Lists of names have at most 1000.

    Attributes:
        batch_size: First dimension of the first tensor that the model was given; None if there was none.
        is_training: The model was in training mode.
        other_mode: Modules whose mode was not the model's.
        groups: The parameter groups of the optimizers that made the update.
        leftover: Parameters to whose gradients from before the last update of their optimizer those of this step were
            added; None if that is not known.
        without_optimizer: Parameters that require a gradient, and that no optimizer holds; None if none is known. In
            the first steps, also those that have a gradient and are kept where torch does not find them, as in a list
            of modules, which nothing writes to.
        frozen_in_optimizer: Parameters that require no gradient, and that an optimizer of the update holds; None
            likewise.
        orphans: Shapes of parameters that an optimizer of the update holds, and that are none of the model's, require a
            gradient and have none: as those of a module that was replaced after the optimizer was made. In a step
            without an update, those of an optimizer that has no parameter of the model, and stepped all the same.
        without_gradient: Parameters that require a gradient, and had none after the backward passes although their
            module was called; None if that is not known.
        remade: Parameters that require a gradient, and were other tensors after the last backward pass than before the
            first forward pass, with a gradient; in the first steps.
        written: Those of `without_optimizer` that were written to between the first pass and the next step.
        gradient_norm: The l2 norm of gradients after the last backward pass, without the loss scale: of up to 8
            parameters that are spread over the model and have at most 2**18 elements together. None if it is not known.
        clipped_norm: The same when the optimizer got them. It is smaller where they were clipped.
        loss_scale: The scale of a `GradScaler`; None without one.
        skipped: How many updates were skipped so far, in steps that are logged and others.
        units: The units of outputs, in some steps.
        equal_rows: Parameters with equal rows, in the first steps.
        not_finite: The first thing since the recorded step before that was seen not to be finite; None if none was.
        operations: Those of a traced step.
        tokens: How the answers stand to each input of tokens, in some steps.
        numbers: What gradients say of the targets of numbers, in some steps; None if that is not known.
        targets: The smallest and the largest target of the model's output if the loss is its mean squared error, in
            some steps; None if that was not looked at.
    """

    batch_size: int | None = None
    is_training: bool = True
    other_mode: tuple[str, ...] = ()
    groups: tuple[ParameterGroup, ...] = ()
    leftover: tuple[str, ...] | None = None
    without_optimizer: tuple[str, ...] | None = None
    frozen_in_optimizer: tuple[str, ...] | None = None
    orphans: tuple[tuple[int, ...], ...] = ()
    without_gradient: tuple[str, ...] | None = None
    remade: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    gradient_norm: float | None = None
    clipped_norm: float | None = None
    loss_scale: float | None = None
    skipped: int = 0
    units: tuple[Units, ...] = ()
    equal_rows: tuple[EqualRows, ...] = ()
    not_finite: NotFinite | None = None
    operations: tuple[Operation, ...] = ()
    tokens: tuple[TokenAnswers, ...] = ()
    numbers: NumberAnswers | None = None
    targets: tuple[float, float] | None = None
