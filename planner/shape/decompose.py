"""Equality classes to a sequence of joins: which streams meet on which key, in a legal order."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, islice, product

from wjoin.planner.shape.join_keys import EXACT, EqualityClass, KeyPart, is_verifiable

_MAXIMUM_CHOICES = 4096

_FEW_INPUTS = 4
"""Inputs of a stage up to which a chain of joins of two may begin with any two of them."""

_Choice = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Places of the inputs, numbers of the classes, and the stream of each input that has the key."""


@dataclass(frozen=True)
class DraftInput:
    """One input of a stage; ``key`` are its parts of the composite key, all of one stream."""

    members: tuple[int, ...]
    stage: int | None
    key: tuple[KeyPart, ...]


@dataclass(frozen=True)
class DraftStage:
    """A join of inputs. ``classes`` are the numbers of the equality classes of its key, empty for none."""

    inputs: tuple[DraftInput, ...]
    classes: tuple[int, ...]

    @property
    def members(self) -> tuple[int, ...]:
        """The streams of all inputs, in input order."""
        return tuple(member for each in self.inputs for member in each.members)


@dataclass(frozen=True)
class Decomposition:
    """Stages, left to right, and the equalities that no key of theirs enforces."""

    stages: tuple[DraftStage, ...]
    equalities: tuple[tuple[KeyPart, KeyPart], ...]


@dataclass(frozen=True)
class Component:
    """What can be an input of a stage: a stream, or the results of a stage."""

    members: tuple[int, ...]
    stage: int | None


def decompose(
    size: int, classes: Sequence[EqualityClass], left_out: Collection[int] = (), first: int | None = None
) -> Decomposition:
    """Return the stages that join ``size`` streams, but for those left out, on their equality classes.

    Class ``first`` begins where one is given; else the classes that link most inputs come first.
    Classes that link the same inputs make a composite key where one stream of every input has a
    part of each. A class whose streams are joined already is an equality to check; inputs that no
    class links meet in a last stage without a key.
    """
    components = [Component((stream,), None) for stream in range(size) if stream not in left_out]
    remaining = {number: _without(each, left_out) for number, each in enumerate(classes)}
    remaining = {number: each for number, each in remaining.items() if each.parts}
    stages: list[DraftStage] = []
    equalities: list[tuple[KeyPart, KeyPart]] = []
    while remaining:
        linked = {number: _linked(each, components) for number, each in remaining.items()}
        for number in [number for number, places in linked.items() if len(places) == 1]:
            one, *others = remaining.pop(number).parts
            equalities += [(one, other) for other in others]
            del linked[number]
        if not remaining:
            break
        if first in linked and not stages:
            linked = {number: places for number, places in linked.items() if places == linked[first]}
        places, numbers, owners = _best(remaining, linked, components)
        chosen = [remaining.pop(number) for number in numbers]
        stage = DraftStage(
            tuple(
                DraftInput(components[place].members, components[place].stage, _key(chosen, owner))
                for place, owner in zip(places, owners, strict=True)
            ),
            numbers,
        )
        equalities += _unenforced(chosen, stage)
        stages.append(stage)
        joined = Component(tuple(sorted(stage.members)), len(stages) - 1)
        components = [each for place, each in enumerate(components) if place not in places]
        components = sorted([joined, *components], key=lambda each: (each.stage is None, each.members))
    if len(components) > 1:
        inputs = tuple(DraftInput(each.members, each.stage, ()) for each in components)
        stages.append(DraftStage(inputs, ()))
    return Decomposition(tuple(stages), tuple(equalities))


def followed(draft: Decomposition, others: Decomposition) -> Decomposition:
    """Return stages, and after them others that know nothing of them."""
    first = len(draft.stages)
    moved = (
        replace(
            stage,
            inputs=tuple(
                each if each.stage is None else replace(each, stage=each.stage + first)
                for each in stage.inputs
            ),
        )
        for stage in others.stages
    )
    return Decomposition((*draft.stages, *moved), (*draft.equalities, *others.equalities))


def joined_with(
    draft: Decomposition, left: Component, right: Component, classes: dict[int, EqualityClass]
) -> Decomposition:
    """Return stages with one more, which joins two sides; ``classes`` are those of its equalities."""
    inputs = left, right
    numbers, owners = _composite(classes, inputs) if classes else ((), (left.members[0], right.members[0]))
    chosen = [classes[number] for number in numbers]
    keys = [_key(chosen, owner) for owner in owners]
    stage = DraftStage(
        tuple(DraftInput(each.members, each.stage, key) for each, key in zip(inputs, keys, strict=True)),
        numbers,
    )
    verifiable = all(is_verifiable(each.type) for each in chosen)
    equalities = []
    for number, each in classes.items():
        sides = [[part for part in each.parts if part.stream in side.members] for side in inputs]
        if not all(sides):
            continue
        keyed = [each.part(owner) for owner in owners] if number in numbers else [None, None]
        first, second = (one or parts[0] for one, parts in zip(keyed, sides, strict=True))
        known = number in numbers and verifiable
        equalities += [(part, second) for part in sides[0] if not (known and part is first)]
        equalities += [(first, part) for part in sides[1] if part is not second]
    return Decomposition((*draft.stages, stage), (*draft.equalities, *equalities))


def in_pairs(draft: Decomposition, links: Collection[Collection[int]] = ()) -> tuple[Decomposition, ...]:
    """Return a decomposition with joins of two in the place of its stage without a key, one after the other.

    ``links`` are the streams of each condition. Next comes ever an input that one links with those before,
    else the next one of the stage. First with two that are linked, then with each other two of them first,
    where there are few; at last in the order of the stage's inputs, as if there were no links.
    """
    if not draft.stages or draft.stages[-1].classes or len(draft.stages[-1].inputs) < 3:
        return (draft,)
    *before, last = draft.stages
    numbers = range(len(last.inputs))
    begins = sorted(combinations(numbers, 2), key=lambda pair: not _links(links, last, pair[:1], pair[1]))
    begins = begins if len(numbers) <= _FEW_INPUTS else begins[:1]
    orders = [*(_linked_order(links, last, pair) for pair in begins), tuple(numbers)]
    return tuple(
        replace(draft, stages=(*before, *_chain(order, last, before))) for order in dict.fromkeys(orders)
    )


def _linked_order(
    links: Collection[Collection[int]], stage: DraftStage, begin: Sequence[int]
) -> tuple[int, ...]:
    """Return the numbers of a stage's inputs, those of ``begin`` first."""
    order = list(begin)
    waiting = [number for number in range(len(stage.inputs)) if number not in begin]
    while waiting:
        linked = (number for number in waiting if _links(links, stage, order, number))
        order.append(next(linked, waiting[0]))
        waiting.remove(order[-1])
    return tuple(order)


def _links(links: Collection[Collection[int]], stage: DraftStage, joined: Sequence[int], number: int) -> bool:
    """Return whether all streams of some condition are there once an input is joined with others."""
    own = set(stage.inputs[number].members)
    known = own.union(*(stage.inputs[each].members for each in joined))
    return any(own & set(link) and not set(link) <= own and set(link) <= known for link in links)


def _chain(order: Sequence[int], stage: DraftStage, before: Sequence[DraftStage]) -> Iterator[DraftStage]:
    """Yield joins of two of a stage's inputs in an order; ``before`` are the stages that come before them."""
    joined = stage.inputs[order[0]]
    for place, number in enumerate(order[1:]):
        made = DraftStage((joined, stage.inputs[number]), ())
        yield made
        joined = DraftInput(tuple(sorted(made.members)), len(before) + place, ())


def _without(each: EqualityClass, left_out: Collection[int]) -> EqualityClass:
    return EqualityClass(each.type, tuple(part for part in each.parts if part.stream not in left_out))


def _linked(each: EqualityClass, components: Sequence[Component]) -> tuple[int, ...]:
    streams = {part.stream for part in each.parts}
    return tuple(place for place, component in enumerate(components) if streams & set(component.members))


def _best(
    remaining: dict[int, EqualityClass], linked: dict[int, tuple[int, ...]], components: Sequence[Component]
) -> _Choice:
    """Return the inputs to join next, the classes of the key, and the stream of each input that has it.

    Most inputs first, then most classes in the key, then what goes on from an earlier stage.
    """
    best: _Choice | None = None
    best_score = (0, 0, 0, 0)
    for places in dict.fromkeys(linked.values()):
        group = {number: remaining[number] for number, each in linked.items() if each == places}
        numbers, owners = _composite(group, [components[place] for place in places])
        continues = sum(components[place].stage is not None for place in places)
        score = (len(places), len(numbers), continues, -min(numbers))
        if best is None or score > best_score:
            best, best_score = (places, numbers, owners), score
    if best is None:
        raise AssertionError("no class is left to join on")
    return best


def _composite(
    group: dict[int, EqualityClass], inputs: Sequence[Component]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the most classes that one stream of every input has a part of each, and these streams.

    Of as many, those that the operator could not check as whole numbers: the others it can.
    """
    best: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    best_score = (0, 0, 0)
    for owners in _owner_choices(group, inputs):
        numbers = tuple(number for number, each in group.items() if all(each.part(owner) for owner in owners))
        if numbers:
            hashed = sum(group[number].type not in EXACT for number in numbers)
            score = (len(numbers), hashed, -min(numbers))
            if not best[0] or score > best_score:
                best, best_score = (numbers, owners), score
    return best


def _owner_choices(group: dict[int, EqualityClass], inputs: Sequence[Component]) -> Iterable[tuple[int, ...]]:
    streams = {part.stream for each in group.values() for part in each.parts}
    options = [[stream for stream in each.members if stream in streams] for each in inputs]
    choices = islice(product(*options), _MAXIMUM_CHOICES)
    # Always legal: the first stream of every input that the class has.
    legal = (
        tuple(next(stream for stream in members if each.part(stream)) for members in options)
        for each in group.values()
    )
    return dict.fromkeys(chain(choices, legal))


def _key(classes: Sequence[EqualityClass], owner: int) -> tuple[KeyPart, ...]:
    return tuple(part for each in classes if (part := each.part(owner)) is not None)


def _unenforced(classes: Sequence[EqualityClass], stage: DraftStage) -> Iterator[tuple[KeyPart, KeyPart]]:
    """Yield what the key of a stage leaves to check of its classes.

    Inside an input, the streams beside the one that has the key; across inputs, everything when
    the operator cannot compare the key's parts itself.
    """
    verifiable = all(is_verifiable(each.type) for each in classes)
    for number, each in enumerate(classes):
        for member_input in stage.inputs:
            owner = member_input.key[number]
            others = (each.part(stream) for stream in member_input.members if stream != owner.stream)
            yield from ((owner, other) for other in others if other is not None)
            if not verifiable and member_input is not stage.inputs[0]:
                yield stage.inputs[0].key[number], owner
