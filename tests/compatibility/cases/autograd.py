"""Uses of autograd other than one forward and one backward pass."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, jacrev, jvp, stack_module_state, vmap
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from tests.compatibility.case import Table, Training, module, sgd
from tests.models import Block, Square

case = Table("autograd")


def _x(*shape: int) -> Any:
    return lambda: torch.randn(*(shape or (4, 6)))


def _net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 2))


def _looped(model: nn.Module, gradients: Any) -> Training:
    """A training whose `gradients(model, number)` runs forward and backward passes and returns what to compare."""
    optimizer = sgd(model.parameters())

    def step(number: int) -> object:
        optimizer.zero_grad()
        result = gradients(model, number)
        optimizer.step()
        return result

    return Training(model, step, [optimizer])


def apply(function: Any, *arguments: Any) -> Any:
    """The result of a custom function, which has no annotations."""
    return function.apply(*arguments)


def _loss(model: nn.Module) -> Tensor:
    return model(torch.randn(4, 6)).square().mean()


@case("a custom function")
def _() -> Any:
    return module(lambda self, x: self.b(apply(Square, self.a(x))), a=nn.Linear(6, 6), b=nn.Linear(6, 2)), _x()


@case("a gradient penalty: backward of a gradient")
def _() -> Any:
    def gradients(model: nn.Module, _number: int) -> Any:
        x = torch.randn(4, 6, requires_grad=True)
        out = model(x).sum()
        (slope,) = torch.autograd.grad(out, x, create_graph=True)
        loss = out + (slope.norm(dim=1) - 1).square().mean()
        loss.backward()
        return loss.detach(), x.grad

    return _looped(_net(), gradients)


@case("backward with create_graph, then again")
def _() -> Any:
    def gradients(model: nn.Module, _number: int) -> Any:
        parameters = list(model.parameters())
        found = torch.autograd.grad(_loss(model), parameters, create_graph=True)
        sum((each.square().sum() for each in found), torch.zeros(())).backward()
        return [each.detach() for each in found]

    return _looped(_net(), gradients)


@case("several backward passes with retain_graph")
def _() -> Any:
    def gradients(model: nn.Module, _number: int) -> Any:
        out = model(torch.randn(4, 6))
        out[:, 0].sum().backward(retain_graph=True)
        out[:, 1].sum().backward(retain_graph=True)
        out.square().sum().backward()
        return out.detach()

    return _looped(_net(), gradients)


@case("two losses, one after the other")
def _() -> Any:
    def gradients(model: nn.Module, _number: int) -> Any:
        first, second = model(torch.randn(4, 6)), model(torch.randn(4, 6))
        first.sum().backward()
        second.square().sum().backward()

    return _looped(_net(), gradients)


@case("several forward passes before one backward pass")
def _() -> Any:
    def gradients(model: nn.Module, _number: int) -> Any:
        loss = sum((_loss(model) for _ in range(3)), torch.zeros(()))
        loss.backward()
        return loss.detach()

    return _looped(_net(), gradients)


@case("twenty forward passes before one backward pass", steps=2)
def _() -> Any:
    def gradients(model: nn.Module, _number: int) -> Any:
        loss = sum((_loss(model) for _ in range(20)), torch.zeros(()))
        loss.backward()
        return loss.detach()

    return _looped(_net(), gradients)


@case("gradient accumulation")
def _() -> Any:
    def gradients(model: nn.Module, _number: int) -> Any:
        for _ in range(3):
            (_loss(model) / 3).backward()

    return _looped(_net(), gradients)


@case("autograd.grad without backward")
def _() -> Any:
    def gradients(model: nn.Module, _number: int) -> Any:
        for parameter, found in zip(
            model.parameters(), torch.autograd.grad(_loss(model), list(model.parameters())), strict=True
        ):
            parameter.grad = found

    return _looped(_net(), gradients)


@case("backward to chosen inputs only")
def _() -> Any:
    def gradients(model: nn.Module, _number: int) -> Any:
        x = torch.randn(4, 6, requires_grad=True)
        model(x).square().mean().backward(inputs=[x, model[2].weight])  # type: ignore[index]
        return x.grad

    return _looped(_net(), gradients)


@case("a step whose backward pass never comes", steps=6)
def _() -> Any:
    def gradients(model: nn.Module, number: int) -> Any:
        loss = _loss(model)
        if number % 2:
            loss.backward()
        return loss.detach()

    return _looped(_net(), gradients)


@case("an output kept over steps, and its backward pass later", steps=6)
def _() -> Any:
    kept: list[Tensor] = []

    def gradients(model: nn.Module, number: int) -> Any:
        kept.append(model(torch.randn(4, 6)).square().mean())
        if number % 3 == 2:
            sum(kept, torch.zeros(())).backward()
            kept.clear()

    def step(number: int) -> object:
        gradients(model, number)
        return [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]

    model = _net()
    return Training(model, step)


@case("a gradient that reaches only some outputs")
def _() -> Any:
    def two(self: Any, x: Tensor) -> Any:
        return self.a(x), self.b(x)

    def gradients(model: nn.Module, _number: int) -> Any:
        first, second = model(torch.randn(4, 6))
        first.sum().backward()
        return second.detach()

    return _looped(module(two, a=nn.Linear(6, 2), b=nn.Linear(6, 2)), gradients)


@case("an exception in forward")
def _() -> Any:
    def fails(self: Any, x: Tensor) -> Tensor:
        y = self.a(x)
        if y.sum() > 0 and self.fail:
            raise ValueError("the user's own")
        return self.b(y)

    def gradients(model: Any, number: int) -> Any:
        model.inner.fail = number % 2 == 0
        try:
            model(torch.ones(4, 6)).sum().backward()
        except ValueError as fault:
            return str(fault)
        return None

    inner = module(fails, a=nn.Linear(6, 6), b=nn.Linear(6, 2))
    with torch.no_grad():
        inner.a.bias.fill_(20.0)
    return _looped(module(lambda self, x: self.inner(x), inner=inner), gradients)


class Refuses(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, refuse: bool) -> Tensor:
        ctx.refuse = refuse
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        if ctx.refuse:
            raise ValueError("the user's own")
        return gradient * 2, None


@case("an exception in backward")
def _() -> Any:
    def refuses(self: Any, x: Tensor, refuse: bool) -> Tensor:
        return self.b(apply(Refuses, self.a(x), refuse))

    def gradients(model: nn.Module, number: int) -> Any:
        try:
            model(torch.randn(4, 6), number % 2 == 0).sum().backward()
        except ValueError as fault:
            return str(fault)
        return None

    return _looped(module(refuses, a=nn.Linear(6, 6), b=nn.Linear(6, 2)), gradients)


@case("an exception caught within the model")
def _() -> Any:
    def inner(self: Any, x: Tensor, fail: bool) -> Tensor:
        y = self.a(x)
        if fail:
            raise ValueError("the user's own")
        return y

    def outer(self: Any, x: Tensor) -> Tensor:
        try:
            return self.inner(x, fail=True)
        except ValueError:
            return self.b(x) + self.inner(x, fail=False)

    return module(outer, inner=module(inner, a=nn.Linear(6, 6)), b=nn.Linear(6, 6)), _x()


@case("a backward pass within forward")
def _() -> Any:
    def inner(self: Any, x: Tensor) -> Tensor:
        fast = self.fast.detach().requires_grad_()
        (slope,) = torch.autograd.grad((self.a(x) @ fast).square().sum(), fast)
        return self.a(x) @ (fast.detach() - 0.1 * slope)

    model = module(inner, a=nn.Linear(6, 6))
    model.register_buffer("fast", torch.randn(6, 2))
    return model, _x()


@case("parts under no_grad, enable_grad and set_grad_enabled")
def _() -> Any:
    def parts(self: Any, x: Tensor) -> Tensor:
        with torch.no_grad():
            y = self.a(x)
            with torch.enable_grad():
                z = self.b(y)
        with torch.set_grad_enabled(False):
            w = self.a(z)
        return z + w + self.a(x)

    return module(parts, a=nn.Linear(6, 6), b=nn.Linear(6, 6)), _x()


@case("views made under no_grad, given to modules: of a result, of a parameter, written to since, made a leaf")
def _() -> Any:
    def parts(self: Any, x: Tensor) -> Tensor:
        hidden = self.a(x)
        with torch.no_grad():
            rows, weight, leaf, second = hidden.view(-1, 3), self.a.weight[:, :3], (2 * x)[:, :3], hidden[:, :3]
            seen = self.b(rows).mean() + self.b(weight).mean()
        written = hidden.clone()
        with torch.no_grad():
            view = written.chunk(2, dim=1)[0]
        written.mul_(2)
        with torch.no_grad():
            seen = seen + self.b(view).mean()
        leaves = self.b(leaf.requires_grad_()) + self.b(second.requires_grad_())
        return hidden + written + seen + self.same(rows).mean() + leaves.mean()

    return module(parts, a=nn.Linear(6, 6), b=nn.Linear(3, 3), same=nn.Identity()), _x()


@case("a reversible block: a function that calls modules with parts of its input, and again in backward")
def _() -> Any:
    class Reversible(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, f: nn.Module, g: nn.Module, *_: Tensor) -> Tensor:
            ctx.f, ctx.g = f, g
            a, b = x.chunk(2, -1)
            a = a + f(b)
            y = torch.cat([a, b + g(a)], -1)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Any:
            a, b = ctx.saved_tensors[0].chunk(2, -1)
            with torch.no_grad():
                b = b - ctx.g(a)
                a = a - ctx.f(b)
            with torch.enable_grad():
                inputs = [a.requires_grad_(), b.requires_grad_()]
                a = a + ctx.f(b)
                y = torch.cat([a, b + ctx.g(a)], -1)
            parameters = [*ctx.f.parameters(), *ctx.g.parameters()]
            found = torch.autograd.grad(y, [*inputs, *parameters], gradient)
            return torch.cat(found[:2], -1), None, None, *found[2:]

    def parts(self: Any, x: Tensor) -> Tensor:
        return self.c(apply(Reversible, self.a(x), self.f, self.g, *self.f.parameters(), *self.g.parameters()))

    return module(parts, a=nn.Linear(6, 6), f=nn.Linear(3, 3), g=nn.Linear(3, 3), c=nn.Linear(6, 2)), _x()


@case("a part under inference_mode")
def _() -> Any:
    def parts(self: Any, x: Tensor) -> Tensor:
        with torch.inference_mode():
            y = self.a(x)
        return self.b(x + y.clone())

    return module(parts, a=nn.Linear(6, 6), b=nn.Linear(6, 6)), _x()


@case("inference and evaluation between the steps")
def _() -> Any:
    def gradients(model: nn.Module, _number: int) -> Any:
        with torch.inference_mode():
            seen = model(torch.randn(4, 6))
        model.eval()
        with torch.no_grad():
            model(torch.randn(2, 6))
        model(torch.randn(2, 6)).sum().backward()
        model.train()
        _loss(model).backward()
        return seen

    return _looped(nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Dropout(0.2), nn.Linear(6, 2)), gradients)


@case("an evaluation between forward and backward")
def _() -> Any:
    def gradients(model: nn.Module, _number: int) -> Any:
        loss = _loss(model)
        model.eval()
        with torch.no_grad():
            seen = model(torch.randn(4, 6))
        model.train()
        loss.backward()
        return seen

    return _looped(nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Linear(6, 2)), gradients)


@case("an adversary: two models, one after the other")
def _() -> Any:
    generator, critic = nn.Linear(3, 6), _net()
    optimizers = [sgd(generator.parameters()), sgd(critic.parameters())]

    def step(_number: int) -> object:
        fake = generator(torch.randn(4, 3))
        optimizers[1].zero_grad()
        loss = critic(fake.detach()).mean() - critic(torch.randn(4, 6)).mean()
        loss.backward()
        optimizers[1].step()
        optimizers[0].zero_grad()
        other = -critic(fake).mean()
        other.backward()
        optimizers[0].step()
        return loss.detach(), other.detach()

    return Training(critic, step, optimizers)


@case("activation checkpointing", steps=6)
def _() -> Any:
    def checkpointed(self: Any, x: Tensor) -> Tensor:
        x = self.stem(x)
        for i, block in enumerate(self.blocks):
            x = checkpoint(block, x, use_reentrant=i == 1)
        return x

    return module(checkpointed, stem=nn.Linear(6, 6), blocks=nn.ModuleList(Block(6) for _ in range(3))), _x()


@case("activation checkpointing with dropout, of a sequence")
def _() -> Any:
    layers = nn.Sequential(*(nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.3)) for _ in range(4)))

    def checkpointed(self: Any, x: Tensor) -> Tensor:
        return checkpoint_sequential(self.layers, 2, self.stem(x), use_reentrant=False)

    return module(checkpointed, stem=nn.Linear(6, 6), layers=layers), _x()


@case("a reentrant checkpoint that trains nothing, as its input needs no gradient")
def _() -> Any:
    def checkpointed(self: Any, x: Tensor) -> Tensor:
        return self.head(checkpoint(self.block, x, use_reentrant=True))

    return module(checkpointed, block=nn.Linear(6, 6), head=nn.Linear(6, 2)), _x()


@case("a checkpoint around the whole model")
def _() -> Any:
    def gradients(model: nn.Module, _number: int) -> Any:
        loss = checkpoint(model, torch.randn(4, 6), use_reentrant=False).square().mean()
        loss.backward()
        return loss.detach()

    return _looped(_net(), gradients)


@case("torch.func: gradients per sample")
def _() -> Any:
    def gradients(model: nn.Module, _number: int) -> Any:
        def loss(parameters: Any, x: Tensor) -> Tensor:
            return functional_call(model, parameters, (x.unsqueeze(0),)).square().sum()

        parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
        found = vmap(grad(loss), in_dims=(None, 0))(parameters, torch.randn(4, 6))
        _loss(model).backward()
        return found

    return _looped(_net(), gradients)


@case("torch.func: an ensemble, whose members' parameters are stacked")
def _() -> Any:
    members = [_net() for _ in range(3)]
    model = members[0]

    def gradients(model: nn.Module, _number: int) -> Any:
        def loss(parameters: Any, buffers: Any, x: Tensor) -> Tensor:
            return functional_call(model, (parameters, buffers), (x,)).square().mean()

        found = vmap(grad(loss), in_dims=(0, 0, None))(*stack_module_state(members), torch.randn(4, 6))
        _loss(model).backward()
        return found

    return _looped(model, gradients)


@case("torch.func within the model: a Jacobian and vmap", traced=False)
def _() -> Any:
    def outer(self: Any, x: Tensor) -> Tensor:
        jacobian = vmap(jacrev(self.a))(x)
        return self.b(jacobian.sum(1)) + vmap(self.b)(x)

    return module(outer, a=nn.Linear(6, 6), b=nn.Linear(6, 2)), _x()


@case("forward-mode derivatives")
def _() -> Any:
    def gradients(model: nn.Module, _number: int) -> Any:
        x, direction = torch.randn(4, 6), torch.randn(4, 6)
        out, slope = jvp(  # type: ignore[misc]
            model.__call__, (x,), (direction,)
        )
        loss = out.square().mean() + slope.square().mean()
        loss.backward()
        with torch.autograd.forward_ad.dual_level():
            dual = model(torch.autograd.forward_ad.make_dual(x, direction))
            tangent = torch.autograd.forward_ad.unpack_dual(dual).tangent
        return slope.detach(), tangent

    return _looped(_net(), gradients)


@case("functional_call with other parameters")
def _() -> Any:
    def gradients(model: nn.Module, _number: int) -> Any:
        fast = {name: parameter * 0.9 for name, parameter in model.named_parameters()}
        loss = functional_call(model, fast, (torch.randn(4, 6),)).square().mean()
        loss.backward()
        return loss.detach()

    return _looped(_net(), gradients)


@case("a Hessian of the model")
def _() -> Any:
    def gradients(model: nn.Module, _number: int) -> Any:
        x = torch.randn(6)
        found = torch.autograd.functional.hessian(lambda x: model(x).sum(), x)
        _loss(model).backward()
        return found

    return _looped(_net(), gradients)


@case("batched gradients: is_grads_batched")
def _() -> Any:
    def gradients(model: nn.Module, _number: int) -> Any:
        x = torch.randn(4, 6, requires_grad=True)
        out = model(x).sum(0)
        (found,) = torch.autograd.grad(out, x, torch.eye(2), is_grads_batched=True, retain_graph=True)
        out.sum().backward()
        return found

    return _looped(_net(), gradients)


@case("gradients of several losses at once, by vmap")
def _() -> Any:
    def gradients(model: nn.Module, _number: int) -> Any:
        out, parameters = model(torch.randn(4, 6)), tuple(model.parameters())

        def backward(weights: Tensor) -> Any:
            return torch.autograd.grad(out, parameters, weights, retain_graph=True)

        found = torch.vmap(backward)(torch.randn(3, *out.shape))
        for parameter, each in zip(parameters, found, strict=True):
            parameter.grad = each.mean(0)
        return found

    return _looped(_net(), gradients)


@case("saved_tensors_hooks that pack to another type")
def _() -> Any:
    def gradients(model: nn.Module, _number: int) -> Any:
        packed: list[int] = []

        def pack(tensor: Tensor) -> Tensor:
            packed.append(tensor.numel())
            return tensor.half()

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda half: half.float()):
            loss = _loss(model)
        loss.backward()
        return loss.detach(), packed

    return _looped(_net(), gradients)


@case("save_on_cpu and disabled saved_tensors_hooks")
def _() -> Any:
    def gradients(model: nn.Module, _number: int) -> Any:
        with torch.autograd.graph.save_on_cpu():
            _loss(model).backward()
        with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
            _loss(model).backward()

    return _looped(_net(), gradients)


@case("allow_mutation_on_saved_tensors")
def _() -> Any:
    def gradients(model: nn.Module, _number: int) -> Any:
        with torch.autograd.graph.allow_mutation_on_saved_tensors():
            x = model(torch.randn(4, 6))
            y = x.sin()
            x.cos_()
            y.sum().backward()
        return y.detach()

    return _looped(_net(), gradients)


@case("anomaly mode")
def _() -> Any:
    def gradients(model: nn.Module, _number: int) -> Any:
        with torch.autograd.detect_anomaly(check_nan=True):
            loss = _loss(model)
            loss.backward()
        return loss.detach()

    return _looped(_net(), gradients)


@case("anomaly mode that finds a NaN gradient")
def _() -> Any:
    def gradients(model: nn.Module, number: int) -> Any:
        try:
            with torch.autograd.detect_anomaly(check_nan=True):
                (model(torch.randn(4, 6)) * 0).sqrt().sum().backward()
        except RuntimeError as fault:
            return str(fault)
        return None

    return _looped(_net(), gradients)


@case("hooks of the user's own on tensors and nodes")
def _() -> Any:
    def gradients(model: nn.Module, _number: int) -> Any:
        seen: list[Any] = []
        x = torch.randn(4, 6, requires_grad=True)
        y = model[0](x)  # type: ignore[index]
        y.retain_grad()
        y.register_hook(lambda gradient: gradient * 2)
        out = model(x) + y.sum()
        out.register_hook(lambda gradient: seen.append(gradient.clone()))
        assert out.grad_fn is not None
        out.grad_fn.register_prehook(lambda gradients: tuple(each * 3 for each in gradients))
        torch.autograd.graph.register_multi_grad_hook((x, y), lambda found: seen.append(len(found)))
        out.sum().backward()
        return seen, x.grad, y.grad

    return _looped(_net(), gradients)


@case("retain_grad on a module's output")
def _() -> Any:
    def keep(self: Any, x: Tensor) -> Tensor:
        y = self.a(x)
        y.retain_grad()
        self.kept = [y]
        return self.b(y)

    def gradients(model: Any, _number: int) -> Any:
        _loss(model).backward()
        return model.kept.pop().grad

    return _looped(module(keep, a=nn.Linear(6, 6), b=nn.Linear(6, 2)), gradients)


@case("backward without zero_grad, set_to_none and not")
def _() -> Any:
    model = _net()
    optimizer = sgd(model.parameters())

    def step(number: int) -> object:
        if number % 2:
            optimizer.zero_grad(set_to_none=number % 3 == 0)
        loss = _loss(model)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Training(model, step, [optimizer])


@case("the optimizer within backward, freeing each gradient")
def _() -> Any:
    model = _net()
    optimizers = {parameter: torch.optim.SGD([parameter], lr=0.1) for parameter in model.parameters()}

    def update(parameter: Any) -> None:
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(update)

    def step(_number: int) -> object:
        loss = _loss(model)
        loss.backward()
        return loss.detach()

    return Training(model, step, list(optimizers.values()))


@case("recurrent training with truncated backpropagation")
def _() -> Any:
    def gradients(model: Any, _number: int) -> Any:
        hidden = torch.zeros(1, 4, 6)
        for _ in range(3):
            hidden = hidden.detach()
            loss = torch.zeros(())
            for _ in range(2):
                out, hidden = model(torch.randn(1, 4, 6), hidden)
                loss = loss + out.square().mean()
            loss.backward()
        return hidden.detach()

    return _looped(nn.GRU(6, 6), gradients)
