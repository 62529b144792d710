// Control flow in the common part of GLSL and C++: the shader control.comp and the test include
// this text, so the host's compiler is the reference.
#define CONTROL_FUNCTIONS 8u

// Returns out of two nested loops.
uint FindFactors(uint n) {
    for (uint i = 2u; i < 40u; ++i) {
        for (uint j = i; j < 40u; ++j) {
            if (i * j == n)
                return i * 100u + j;
            if (i * j > n)
                break;
        }
        if (i * i > n)
            return n;
    }
    return 7777u;
}

// Falls through, in and out of a default in the middle.
uint SwitchInTheMiddle(uint n) {
    uint r = n;
    switch (n % 9u) {
    case 0u:
        r += 1u;
    case 1u:
        r *= 3u;
        break;
    case 2u:
        r += 5u;
    default:
        r ^= 0x55u;
    case 3u:
        r += 11u;
        if (r % 2u == 0u)
            break;
        r *= 7u;
    case 4u:
    case 5u:
        return r + 1000u;
    case 6u:
        r = 0u;
    }
    return r;
}

uint SwitchInALoop(uint n) {
    uint r = 0u;
    for (uint i = 0u; i < 20u; ++i) {
        switch ((n + i) % 5u) {
        case 0u:
            continue;
        case 1u:
            r += i;
            break;
        case 2u:
            if (r > 40u)
                return r * 3u;
            r += 2u * i;
        case 3u:
            r ^= n;
            break;
        default:
            r += 1u;
        }
        if (r % 13u == 12u)
            break;
        r += 100u * (i & 1u);
    }
    return r;
}

uint Collatz(uint n) {
    uint steps = 0u;
    uint x = n + 1u;
    do {
        if (x == 1u)
            continue;
        x = (x % 2u == 0u) ? x / 2u : 3u * x + 1u;
        ++steps;
    } while (x != 1u && steps < 200u);
    return steps;
}

uint BreakAndContinue(uint n) {
    uint sum = 0u;
    for (uint i = 0u; i < 12u; ++i) {
        if ((i ^ n) % 3u == 0u)
            continue;
        uint j = 0u;
        while (true) {
            ++j;
            if (j % 4u == n % 4u)
                continue;
            if (j > i + (n & 7u))
                break;
            uint k = 0u;
            do {
                sum += k + j;
                if (sum % 17u == 3u)
                    break;
            } while (++k < j);
        }
        if (sum > 5000u)
            break;
    }
    return sum;
}

// Returns before, in and behind a loop that other invocations leave elsewhere.
uint EarlyReturns(uint n) {
    if (n % 11u == 10u)
        return 1u;
    uint a = 1u;
    for (uint i = 0u; i <= n % 32u; ++i) {
        a = a * 5u + i;
        if (a % 64u == 63u)
            return a;
        if (a % 32u == 30u)
            break;
        if (a % 16u == 7u)
            i += 2u;
    }
    if (a % 3u == 0u)
        return a ^ 0xffffu;
    return a;
}

// The operands with effects must not run where && and || and ?: leave them out.
uint ShortCircuits(uint n) {
    uint c = 0u;
    bool a = (n & 1u) != 0u && c++ == 0u;
    bool b = (n & 2u) != 0u || c++ == 5u;
    bool d = (a || ++c > 2u) && (b || ++c > 2u);
    uint e = d ? 1u : c++;
    return c * 8u + (a ? 4u : 0u) + (b ? 2u : 0u) + e;
}

// Calls in loops, and a loop whose body never runs for some.
uint Calls(uint n) {
    uint r = 0u;
    for (uint i = n; i < 50u; i += 1u + EarlyReturns(i) % 7u)
        r += SwitchInTheMiddle(i) ^ FindFactors(i);
    return r;
}

uint Control(uint which, uint n) {
    switch (which) {
    case 0u:
        return FindFactors(n);
    case 1u:
        return SwitchInTheMiddle(n);
    case 2u:
        return SwitchInALoop(n);
    case 3u:
        return Collatz(n);
    case 4u:
        return BreakAndContinue(n);
    case 5u:
        return EarlyReturns(n);
    case 6u:
        return ShortCircuits(n);
    default:
        return Calls(n);
    }
}
