"""Plain Python versions of the compiled loops: as short as the definitions, and slow."""

import math

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix64(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def seed_mask(seed):
    return mix64((seed + 1) * GOLDEN & MASK)


def scaled(fraction, size):
    return fraction * size >> 32


def choice(key, salt, bins, seed):
    return scaled(mix64((key ^ seed_mask(seed)) + salt * GOLDEN & MASK) >> 32, bins)


def least_loaded(loads, candidates):
    """Return the first of the candidates with the lowest load."""
    return min(candidates, key=lambda b: loads[b])


def kg(scheme, keys, bins, seed):
    return [choice(key, 1, bins, seed) for key in keys]


def sg(scheme, keys, bins, seed):
    return [(seed + i) % bins for i in range(len(keys))]


def pkg(scheme, keys, bins, seed):
    loads, out = [0] * bins, []
    for key in keys:
        b = least_loaded(loads, [choice(key, salt, bins, seed) for salt in (1, 2)])
        loads[b] += 1
        out.append(b)
    return out


def salting(scheme, keys, bins, seed):
    return [choice(key, 1 + i % scheme.salts, bins, seed) for i, key in enumerate(keys)]


def potc(scheme, keys, bins, seed):
    loads, out = [0] * bins, []
    for i in range(len(keys)):
        b = least_loaded(loads, [choice(mix64(i), salt, bins, seed) for salt in (1, 2)])
        loads[b] += 1
        out.append(b)
    return out


def ch(scheme, keys, bins, seed):
    points = [(mix64((MASK - b) ^ seed_mask(seed)), b) for b in range(bins)]
    ring = [b for _, b in sorted(points)]
    places = sorted(point for point, _ in points)
    loads, out = [0] * bins, []
    for m, key in enumerate(keys, start=1):
        point = mix64(key ^ seed_mask(seed))
        place = sum(other < point for other in places)
        while loads[ring[place % bins]] >= (1 + scheme.epsilon) * m / bins:
            place += 1
        loads[ring[place % bins]] += 1
        out.append(ring[place % bins])
    return out


def porc(scheme, keys, bins, seed):
    """Route by Algorithm 1 of the paper; count each message before the load is tested."""
    loads, out = [0] * bins, []
    for m, key in enumerate(keys, start=1):
        salt = 1
        b = choice(key, salt, bins, seed)
        while loads[b] >= (1 + scheme.epsilon) * m / bins:
            salt += 1
            b = choice(key, salt, bins, seed)
        loads[b] += 1
        out.append(b)
    return out


def porc_graded(scheme, keys, bins, seed):
    last = scheme.grades - 1
    steps = [s for s in range(1, max(bins, 2)) if math.gcd(s, bins) == 1]
    slots = 1
    while slots < 16 * bins:
        slots *= 2
    loads, hot, votes, out = [0] * bins, {}, {}, []
    for i, key in enumerate(keys, start=1):
        m = sum(loads) + 1
        mixed = mix64(key ^ seed_mask(seed))
        slot = (mixed >> 20) % slots
        q = 0
        if votes.get(slot, 0) > 0 and hot[slot] == key:
            votes[slot] += 1
            q = votes[slot]
        else:
            votes[slot] = votes.get(slot, 0) - 1
            if votes[slot] <= 0:
                hot[slot], votes[slot] = key, 1
        grade = 0
        while q >= 2 and grade < last and q > scheme.heavy_share * m / bins * 2**grade:
            grade += 1
        part = 1 - grade / last
        limit = math.ceil(m * (1 + scheme.epsilon * part) / bins + scheme.slack * part)
        b = scaled(mixed >> 32, bins)
        while loads[b] >= limit:
            b = (b + steps[scaled(mixed & 0xFFFFFFFF, len(steps))]) % bins
        loads[b] += 1
        out.append(b)
        if scheme.half_life is not None and i % scheme.half_life == 0:
            loads = [x // 2 for x in loads]
            votes = {s: v // 2 for s, v in votes.items()}
    return out


class SpaceSaving:
    """Counters in descending order. A new key replaces the last key and keeps its count."""

    def __init__(self, size):
        self.counters = [[None, 0] for _ in range(size)]

    def observe(self, key):
        names = [name for name, _ in self.counters]
        place = names.index(key) if key in names else len(names) - 1
        counter = self.counters.pop(place)
        counter[0] = key
        equal = [count for _, count in self.counters]
        first = next((i for i, c in enumerate(equal) if c <= counter[1]), len(equal))
        if first < place:  # the two counters change places, the others do not move
            other = self.counters.pop(first)
            self.counters.insert(first, counter)
            self.counters.insert(place, other)
        else:
            self.counters.insert(place, counter)
        counter[1] += 1
        return counter[1]


def enough_choices(head, bins, tolerance):
    tail = max(0.0, 1 - sum(head))
    for d in range(max([2] + [math.ceil(p * bins) for p in head[:1]]), bins):
        for h in range(1, len(head) + 1):
            owned = 1 - (1 - 1 / bins) ** (h * d)
            load = sum(head[:h]) + sum(head[h:]) * owned**d + tail * owned**2
            if load > owned * (1 + bins * tolerance):
                break
        else:
            return d
    return bins


def head_choices(scheme, keys, bins, seed):
    threshold = scheme.head_share / bins
    summary = SpaceSaving(math.ceil(2 / threshold))
    refresh = 0
    head_choices = bins
    if scheme.name == "dchoices":
        refresh = scheme.refresh or max(10_000, 100 * bins)
        head_choices = min(2, bins)
    loads, out = [0] * bins, []
    for m, key in enumerate(keys, start=1):
        is_head = summary.observe(key) >= threshold * m
        if is_head and head_choices >= bins:
            b = least_loaded(loads, range(bins))
        else:
            salts = range(1, (head_choices if is_head else 2) + 1)
            b = least_loaded(loads, [choice(key, salt, bins, seed) for salt in salts])
        loads[b] += 1
        out.append(b)
        if refresh and (m % refresh == 0 or (m < refresh and m & (m - 1) == 0)):
            head = [count / m for _, count in summary.counters if count >= threshold * m]
            head_choices = enough_choices(head, bins, scheme.tolerance)
    return out


TWINS = {
    "kg": kg,
    "sg": sg,
    "pkg": pkg,
    "salting": salting,
    "potc": potc,
    "ch": ch,
    "porc": porc,
    "porc-graded": porc_graded,
    "dchoices": head_choices,
    "wchoices": head_choices,
}
