/* Gaussian averages along the proximal curve, in one pass over the nodes of each point.

   What proximal_curve.py and channel.py say in NumPy, and docs/theory.md derives: for the shortfall
   u = mean - deviation xi of one label, with proximal point s, u = s + V rho'(s),

       h = rho'(s),    g = rho''/(1 + V rho''),    Z = sum_k w_k Phi((k xi - t_k)/sqrt(V0 + D_k)),

   and the fifteen sums, over dxi with the normal density, that the saddle point is made of. Losses
   are not known here by name: they come as polynomials on cells (see numerics/cells.py), label laws
   as weights, thresholds and variances. A cell of NaN marks what no polynomial describes; the sums
   of a point that needs it are NaN, and NumPy is asked instead.

   All state is on the stack or belongs to the call, so that calls run on any number of threads.
   Sums have LANES partial sums whatever the instruction set, so that only fused multiply-adds
   distinguish one machine from another. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
/* no number depends on these: loops over lanes become vector instructions */
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#endif
#if defined(__GNUC__) || defined(__clang__)
#define INLINE static inline __attribute__((always_inline))
#elif defined(_MSC_VER)
#define INLINE static __forceinline
#else
#define INLINE static inline
#endif
/* the best instruction set is chosen when the library is loaded; this takes gcc and glibc */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    __GNUC__ >= 12
#define FOR_EACH_MACHINE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_EACH_MACHINE
#endif

/* as in proximal_curve.py, where they are explained */
#define REACH 9.0
#define FLAT 1e-9
#define NARROW 0.01
#define ASIDE 0.1
#define NARROWEST 1e-15
#define POINT 1e-13
#define ITERATIONS 200
static const double FAN[] = {-REACH, -4.5, -1.5, 0.0, 1.5, 4.5, REACH};

enum {
    FANNED = 7,
    LANES = 8,
    CAPACITY = 256, /* nodes handled together, a multiple of LANES */
};
/* E[Z g], E[Z h^2], E[Z h], E[Z rho], E[Z], E[Z g xi], ...: in the order of channel.py */
enum { E1, E2, E0, LOSS, NORM, GX, GXX, GH, GHX, GHH, E3, G1, G1X, G2, G1H, SUMS };

/* ------------------------------------------------------------------ the normal law */

/* e^x of x <= 0, to 1 ulp; zero below -708. */
INLINE double decay(double x)
{
    const double magic = 6755399441055744.0; /* 3 * 2^51: its last bits count units */
    double shifted = x * 1.4426950408889634 + magic;
    double n = shifted - magic;
    double r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    double p = 1.6059043836821613e-10; /* Taylor: |r| <= log(2)/2 */
    p = p * r + 2.08767569878681e-09;
    p = p * r + 2.505210838544172e-08;
    p = p * r + 2.755731922398589e-07;
    p = p * r + 2.7557319223985893e-06;
    p = p * r + 2.48015873015873e-05;
    p = p * r + 1.984126984126984e-04;
    p = p * r + 1.388888888888889e-03;
    p = p * r + 8.333333333333333e-03;
    p = p * r + 4.1666666666666664e-02;
    p = p * r + 1.6666666666666666e-01;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    uint64_t bits, power;
    memcpy(&bits, &p, sizeof bits);
    memcpy(&power, &shifted, sizeof power);
    bits += power << 52; /* times 2^n */
    memcpy(&p, &bits, sizeof p);
    return x < -708.0 ? 0.0 : p;
}

/* phi(t), the normal density. */
INLINE double density(double t) { return 0.3989422804014327 * decay(-0.5 * t * t); }

/* The Mills ratio (1 - Phi(t))/phi(t), 0 <= t <= 40: (1 + t) times it is smooth in
   q = (t - 5)/(t + 5), here a polynomial that interpolates it to 7e-17. */
INLINE double mills(double t)
{
    double both = 1.0 / ((t + 5.0) * (1.0 + t));
    double q = (t - 5.0) * (1.0 + t) * both;
    double p = 5.5046381740114145e-09;
    p = p * q + 4.042967757143865e-09;
    p = p * q - 6.600576816872284e-08;
    p = p * q - 5.406265075207721e-08;
    p = p * q + 4.793850714655945e-07;
    p = p * q + 3.0651244506755494e-07;
    p = p * q - 3.269139906295844e-06;
    p = p * q - 1.66568631900845e-07;
    p = p * q + 2.2706305975126677e-05;
    p = p * q - 2.4810060457200764e-05;
    p = p * q - 0.00013437341693300388;
    p = p * q + 0.00045704507213429685;
    p = p * q + 1.953049420669105e-05;
    p = p * q - 0.004201290521409951;
    p = p * q + 0.01634823129621999;
    p = p * q - 0.03802659216724148;
    p = p * q + 0.061505045839232206;
    p = p * q - 0.06617760078001313;
    p = p * q + 0.02507217930166957;
    p = p * q + 0.0777815988687552;
    p = p * q - 0.2294875382521135;
    p = p * q + 1.1568486282918946;
    return p * (t + 5.0) * both;
}

/* Phi(t), given phi(t). */
INLINE double cumulative(double t, double phi)
{
    double far = fabs(t), tail = phi * mills(far < 40.0 ? far : 40.0);
    return t < 0.0 ? tail : 1.0 - tail;
}

/* ------------------------------------------------------------------ the loss */

/* Cells of stride numbers: right end, origin o, 1/unit, and coefficients of rho', rho'' and rho in
   powers of (s - o)/unit; bins of equal width say in which cell to begin. */
typedef struct {
    const double *cells, *first;
    Py_ssize_t stride, powers, bins;
    double low, per_bin;
    const double *knot, *below, *above, *bend, *kink;
    Py_ssize_t knots;
    double scale; /* 0 if rho'' is constant between kinks */
} Loss;

INLINE const double *cell_of(const Loss *loss, double s)
{
    double at = (s - loss->low) * loss->per_bin, last = (double)(loss->bins - 1);
    Py_ssize_t bin = at > 0.0 ? (Py_ssize_t)(at < last ? at : last) : 0;
    const double *cell = loss->cells + (Py_ssize_t)loss->first[bin] * loss->stride;
    while (s > cell[0])
        cell += loss->stride;
    while (cell > loss->cells && s <= cell[-loss->stride])
        cell -= loss->stride;
    return cell;
}

/* rho'(s) and rho''(s). */
INLINE void slopes(const Loss *loss, double s, double *h, double *curvature)
{
    const double *cell = cell_of(loss, s), *p = cell + 3, *q = p + loss->powers;
    double t = (s - cell[1]) * cell[2], a = p[loss->powers - 1], b = q[loss->powers - 1];
    for (Py_ssize_t i = loss->powers - 2; i >= 0; i--) {
        a = a * t + p[i];
        b = b * t + q[i];
    }
    *h = a;
    *curvature = b;
}

/* rho(s). */
INLINE double value(const Loss *loss, double s)
{
    const double *cell = cell_of(loss, s), *p = cell + 3 + 2 * loss->powers;
    double t = (s - cell[1]) * cell[2], a = p[loss->powers - 1];
    for (Py_ssize_t i = loss->powers - 2; i >= 0; i--)
        a = a * t + p[i];
    return a;
}

/* The s in [low, high] with s + V rho'(s) = u: Newton steps kept inside a shrinking bracket. */
INLINE double root(const Loss *loss, double u, double V, double low, double high, double s,
                   double tolerance)
{
    for (int turn = 0; turn < ITERATIONS; turn++) {
        double h, curvature, before = s;
        slopes(loss, s, &h, &curvature);
        double excess = s + V * h - u;
        if (isnan(excess))
            return NAN;
        if (excess < 0.0)
            low = s;
        else
            high = s;
        double slack = 1e-14 * (fabs(low) + fabs(high));
        s -= excess / (1.0 + V * curvature);
        if (!(s >= low - slack && s <= high + slack))
            s = 0.5 * (low + high);
        s = s < low ? low : s > high ? high : s;
        if (fabs(excess) <= tolerance || fabs(s - before) <= 4e-16 * fmax(fabs(s), fabs(before)))
            return s;
    }
    return NAN;
}

/* ------------------------------------------------------------------ one point and its nodes */

typedef struct {
    const double *weight, *threshold, *variance; /* thresholds along the label */
    Py_ssize_t terms;
    double offset;
} Law;

typedef struct {
    const double *x, *w;
    Py_ssize_t nodes;
} Rule;

typedef struct {
    double V, mean, deviation, k, V0;
    double *zeta, *s; /* cuts in increasing order, as (u - mean)/deviation and as s */
    Py_ssize_t cuts;
    double *enter, *leave; /* where u enters and leaves each knot, as zeta */
    int lost;              /* whether a cut was not found */
} Point;

/* Nodes that wait to be summed, and the sums so far. */
typedef struct {
    double xi[CAPACITY], h[CAPACITY], mass[CAPACITY], bend[CAPACITY], rho[CAPACITY];
    double sums[SUMS][LANES];
    Py_ssize_t count;
} Nodes;

/* Add the waiting nodes to the sums. */
FOR_EACH_MACHINE static void add_up(Nodes *n, const Law *law, double k, double V0)
{
    double Z[CAPACITY], Z1[CAPACITY], Z2[CAPACITY];
    for (; n->count % LANES; n->count++) {
        Py_ssize_t i = n->count;
        n->xi[i] = n->h[i] = n->mass[i] = n->bend[i] = n->rho[i] = 0.0;
    }
    Py_ssize_t blocks = n->count / LANES;
    for (Py_ssize_t i = 0; i < blocks * LANES; i++) {
        double phi = density(n->xi[i]);
        n->mass[i] *= phi;
        n->bend[i] *= phi;
        Z[i] = law->offset;
        Z1[i] = Z2[i] = 0.0;
    }
    for (Py_ssize_t j = 0; j < law->terms; j++) {
        double inverse = 1.0 / sqrt(V0 + law->variance[j]), weight = law->weight[j];
        double threshold = law->threshold[j], steep = weight * inverse;
        for (Py_ssize_t i = 0; i < blocks * LANES; i++) {
            double t = (k * n->xi[i] - threshold) * inverse, phi = density(t);
            Z[i] += weight * cumulative(t, phi);
            Z1[i] += steep * phi;
            Z2[i] -= inverse * t * (steep * phi);
        }
    }
    for (Py_ssize_t block = 0; block < blocks; block++)
        for (Py_ssize_t l = 0; l < LANES; l++) {
            Py_ssize_t i = block * LANES + l;
            double x = n->xi[i], h = n->h[i], m = n->mass[i], b = n->bend[i];
            double mZ = m * Z[i], bZ = b * Z[i], bZ1 = b * Z1[i];
            n->sums[E1][l] += bZ;
            n->sums[E2][l] += mZ * h * h;
            n->sums[E0][l] += mZ * h;
            n->sums[LOSS][l] += mZ * n->rho[i];
            n->sums[NORM][l] += mZ;
            n->sums[GX][l] += bZ * x;
            n->sums[GXX][l] += bZ * x * x;
            n->sums[GH][l] += bZ * h;
            n->sums[GHX][l] += bZ * h * x;
            n->sums[GHH][l] += bZ * h * h;
            n->sums[E3][l] += m * Z1[i] * h;
            n->sums[G1][l] += bZ1;
            n->sums[G1X][l] += bZ1 * x;
            n->sums[G2][l] += b * Z2[i];
            n->sums[G1H][l] += bZ1 * h;
        }
    n->count = 0;
}

INLINE void add_node(Nodes *n, const Law *law, const Point *p, double xi, double h, double mass,
                     double bend, double rho)
{
    if (n->count == CAPACITY)
        add_up(n, law, p->k, p->V0);
    Py_ssize_t i = n->count++;
    n->xi[i] = xi;
    n->h[i] = h;
    n->mass[i] = mass;
    n->bend[i] = bend;
    n->rho[i] = rho;
}

/* ------------------------------------------------------------------ cuts of the curve */

/* The proximal point of u. */
INLINE double proximal(const Loss *loss, double u, double V, double tolerance)
{
    Py_ssize_t piece = 0, last = loss->knots;
    while (piece < last && loss->knot[piece] + V * loss->below[piece] <= u)
        piece++; /* the piece between knots piece - 1 and piece; rho' bounds the outer two */
    Py_ssize_t j = piece - 1;
    if (piece && loss->above[j] > loss->below[j] && u <= loss->knot[j] + V * loss->above[j])
        return loss->knot[j];
    double low = piece ? loss->knot[j] : u - V * loss->below[0];
    double high = piece < last ? loss->knot[piece] : u - V * loss->above[last - 1];
    double middle = 0.5 * (low + high);
    return high > low ? root(loss, u, V, low, high, middle, tolerance) : low;
}

/* Insert a cut into the sorted ones. */
INLINE void cut(Point *p, double zeta, double s)
{
    Py_ssize_t i = p->cuts++;
    for (; i > 0 && p->zeta[i - 1] > zeta; i--) {
        p->zeta[i] = p->zeta[i - 1];
        p->s[i] = p->s[i - 1];
    }
    p->zeta[i] = zeta;
    p->s[i] = s;
}

/* Cut at a place given in standard deviations. */
INLINE void cut_at(Point *p, const Loss *loss, double zeta)
{
    double tolerance = loss->scale > 0.0 ? ASIDE * p->deviation : 0.0;
    double s = proximal(loss, p->mean + p->deviation * zeta, p->V, tolerance);
    if (loss->scale > 0.0) { /* a little aside is allowed, but s and zeta must belong together */
        double h, curvature;
        slopes(loss, s, &h, &curvature);
        double there = (s - p->mean + p->V * h) / p->deviation;
        zeta = there < zeta - ASIDE ? zeta - ASIDE : there > zeta + ASIDE ? zeta + ASIDE : there;
    }
    p->lost |= isnan(s);
    cut(p, zeta, s);
}

/* Cut the curve at the fan, where the label law bends, and at the knots of the loss. */
INLINE void cut_curve(Point *p, const Loss *loss, const double *marks, Py_ssize_t count)
{
    p->cuts = 0;
    for (int i = 0; i < FANNED; i++)
        cut_at(p, loss, FAN[i]);
    double first = p->zeta[0], last = p->zeta[FANNED - 1], low = INFINITY, high = -INFINITY;
    for (Py_ssize_t i = 0; i < count; i++) {
        low = fmin(low, -marks[i] / p->k);
        high = fmax(high, -marks[i] / p->k);
    }
    if (high - low < 2.0 * REACH) /* else the law bends no more than the Gaussian does */
        for (Py_ssize_t i = 0; i < count; i++)
            if (fabs(marks[i] / p->k) < REACH)
                cut_at(p, loss, -marks[i] / p->k);
    for (Py_ssize_t i = 0; i < loss->knots; i++) {
        double V = p->V, knot = loss->knot[i];
        double enter = p->enter[i] = (knot + V * loss->below[i] - p->mean) / p->deviation;
        double leave = p->leave[i] = (knot + V * loss->above[i] - p->mean) / p->deviation;
        int needed = loss->scale == 0.0 || loss->kink[i] || !((1.0 + V) * loss->bend[i] < FLAT);
        if (needed && enter > first && enter < last)
            cut(p, enter, knot);
        if (loss->above[i] > loss->below[i] && leave > first && leave < last)
            cut(p, leave, knot);
    }
}

/* ------------------------------------------------------------------ panels between the cuts */

/* The kink on which s stands still along a panel, or -1. */
INLINE Py_ssize_t kink_of(const Point *p, const Loss *loss, double middle)
{
    for (Py_ssize_t i = 0; i < loss->knots; i++)
        if (loss->above[i] > loss->below[i] && p->enter[i] < middle && middle < p->leave[i])
            return i;
    return -1;
}

/* A panel on a kink, where u runs while s stands still: g = 1/V. */
INLINE void panel_on_kink(Nodes *n, const Law *law, const Point *p, const Loss *loss,
                          const Rule *rule, double start, double width, Py_ssize_t kink)
{
    double knot = loss->knot[kink], jump = loss->above[kink] - loss->below[kink];
    double rho = value(loss, knot), V = p->V;
    if (!(V * jump > POINT * p->deviation))
        return; /* see point_masses */
    /* a kink that no cut divides: its width is known exactly, however narrow it is */
    int whole = width >= (1.0 - 1e-9) * (p->leave[kink] - p->enter[kink]);
    for (Py_ssize_t i = 0; i < rule->nodes; i++) {
        double x = rule->x[i], zeta = start + width * x;
        double h = whole ? loss->below[kink] + jump * x
                         : ((p->mean - knot) + p->deviation * zeta) / V;
        double mass = (whole ? V * jump / p->deviation : width) * rule->w[i];
        add_node(n, law, p, -zeta, h, mass, mass / V, rho);
    }
}

/* Kinks too narrow for a panel: u stands still as well, yet h crosses its jump. */
INLINE void point_masses(Nodes *n, const Law *law, const Point *p, const Loss *loss,
                         const Rule *rule)
{
    for (Py_ssize_t k = 0; k < loss->knots; k++) {
        double jump = loss->above[k] - loss->below[k], width = p->V * jump / p->deviation;
        if (!(width > 0.0 && width <= POINT && fabs(p->enter[k]) < REACH))
            continue;
        double rho = value(loss, loss->knot[k]);
        for (Py_ssize_t i = 0; i < rule->nodes; i++)
            add_node(n, law, p, -p->enter[k], loss->below[k] + jump * rule->x[i],
                     width * rule->w[i], jump / p->deviation * rule->w[i], rho);
    }
}

/* A panel between kinks, which runs over s if rho'' bends: du = (1 + V rho'') ds. */
INLINE void panel(Nodes *n, const Law *law, const Point *p, const Loss *loss, const Rule *rule,
                  Py_ssize_t at, int with_loss)
{
    double V = p->V, start = p->zeta[at], width = p->zeta[at + 1] - start;
    double first = p->s[at], length = p->s[at + 1] - first;
    double low = first + length * rule->x[0], high = first + length * rule->x[rule->nodes - 1];
    double margin = fabs(high - low) + 1e-15 * fabs(high); /* the ends are known to rounding */
    int bent = loss->scale > 0.0, narrow = bent && length < NARROW * loss->scale;
    for (Py_ssize_t i = 0; i < rule->nodes; i++) {
        double x = rule->x[i], w = rule->w[i], s = first + length * x, h, curvature;
        double zeta = start + width * x, mass = width * w, bend;
        if (narrow) { /* u - mean would lose its digits: run over u */
            double u = p->mean + p->deviation * zeta;
            s = root(loss, u, V, low - margin, high + margin, s, 2.2e-16 * fabs(u));
        }
        slopes(loss, s, &h, &curvature);
        if (bent && !narrow) {
            zeta = (s - p->mean + V * h) / p->deviation;
            double step = length / p->deviation * w;
            mass = step * (1.0 + V * curvature);
            bend = step * curvature;
        } else {
            bend = mass * curvature / (1.0 + V * curvature);
        }
        add_node(n, law, p, -zeta, h, mass, bend, with_loss ? value(loss, s) : 0.0);
    }
}

static void write_sums(Nodes *n, const Law *law, double k, double V0, double *out)
{
    add_up(n, law, k, V0);
    for (int j = 0; j < SUMS; j++) {
        double total = 0.0;
        for (int l = 0; l < LANES; l++)
            total += n->sums[j][l];
        out[j] = total;
    }
}

/* ------------------------------------------------------------------ all points of a call */

typedef struct {
    Loss loss;
    Law law;
    Rule rule;
    Py_ssize_t rows, columns;
    const double *field, *edges; /* edges: marks of the label law, or of panels */
    double *out;
    int with_loss;
} Call;

/* The sums of each point along its proximal curve. */
FOR_EACH_MACHINE static void curves(const Call *c, double *work)
{
    Loss loss = c->loss;
    Nodes n;
    for (Py_ssize_t row = 0; row < c->rows; row++) {
        const double *f = c->field + row;
        Py_ssize_t most = FANNED + c->columns + 2 * loss.knots;
        Point p = {.V = f[0],
                   .mean = f[c->rows],
                   .deviation = f[2 * c->rows],
                   .k = f[3 * c->rows],
                   .V0 = f[4 * c->rows],
                   .zeta = work,
                   .s = work + most,
                   .enter = work + 2 * most,
                   .leave = work + 2 * most + loss.knots};
        cut_curve(&p, &loss, c->edges + row * c->columns, c->columns);
        memset(n.sums, 0, sizeof n.sums);
        n.count = 0;
        for (Py_ssize_t at = 0; at + 1 < p.cuts; at++) {
            double start = p.zeta[at], width = p.zeta[at + 1] - start;
            if (!(width > NARROWEST))
                continue;
            Py_ssize_t kink = kink_of(&p, &loss, start + 0.5 * width);
            if (kink >= 0)
                panel_on_kink(&n, &c->law, &p, &loss, &c->rule, start, width, kink);
            else
                panel(&n, &c->law, &p, &loss, &c->rule, at, c->with_loss);
        }
        point_masses(&n, &c->law, &p, &loss, &c->rule);
        write_sums(&n, &c->law, p.k, p.V0, c->out + row * SUMS);
        if (p.lost)
            c->out[row * SUMS] = NAN;
    }
}

/* E[Z] of each point over its own panels; the field is (k, V0). */
FOR_EACH_MACHINE static void shares(const Call *c)
{
    Nodes n;
    for (Py_ssize_t row = 0; row < c->rows; row++) {
        const double *edge = c->edges + row * c->columns;
        double sums[SUMS];
        Point p = {0};
        p.k = c->field[row];
        p.V0 = c->field[c->rows + row];
        memset(n.sums, 0, sizeof n.sums);
        n.count = 0;
        for (Py_ssize_t i = 0; i + 1 < c->columns; i++) {
            double width = edge[i + 1] - edge[i];
            if (width > 0.0)
                for (Py_ssize_t j = 0; j < c->rule.nodes; j++)
                    add_node(&n, &c->law, &p, edge[i] + width * c->rule.x[j], 0.0,
                             width * c->rule.w[j], 0.0, 0.0);
        }
        write_sums(&n, &c->law, p.k, p.V0, sums);
        c->out[row] = sums[NORM];
    }
}

FOR_EACH_MACHINE static void normal_law(const double *t, Py_ssize_t count, double *out)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        double phi = density(t[i]);
        out[i] = phi;
        out[count + i] = cumulative(t[i], phi);
    }
}

/* ------------------------------------------------------------------ Python */

enum { MOST_BUFFERS = 7 };

typedef struct {
    Py_buffer view[MOST_BUFFERS];
    int count;
} Buffers;

static void release(Buffers *b)
{
    while (b->count)
        PyBuffer_Release(&b->view[--b->count]);
}

/* Hold C-contiguous arrays of doubles of two dimensions, the first one to be written. */
static int hold(Buffers *b, PyObject *const *objects, int count)
{
    for (b->count = 0; b->count < count; b->count++) {
        Py_buffer *view = &b->view[b->count];
        int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (b->count ? 0 : PyBUF_WRITABLE);
        if (PyObject_GetBuffer(objects[b->count], view, flags) < 0)
            break;
        if (view->ndim != 2 || !view->format || strcmp(view->format, "d")) {
            PyBuffer_Release(view);
            PyErr_SetString(PyExc_ValueError, "expected arrays of doubles of two dimensions");
            break;
        }
    }
    if (b->count == count)
        return 1;
    release(b);
    return 0;
}

static int fits(const Buffers *b, int which, Py_ssize_t rows, Py_ssize_t columns)
{
    const Py_ssize_t *shape = b->view[which].shape;
    if ((rows < 0 || shape[0] == rows) && (columns < 0 || shape[1] == columns))
        return 1;
    PyErr_Format(PyExc_ValueError, "array %d has the shape (%zd, %zd)", which, shape[0], shape[1]);
    return 0;
}

/* The parts of a call that all functions share: buffers 0 to 4. */
static Call call_of(const Buffers *b, double offset)
{
    Call c = {0};
    const double *law = b->view[3].buf, *rule = b->view[4].buf;
    Py_ssize_t terms = b->view[3].shape[1], nodes = b->view[4].shape[1];
    c.out = b->view[0].buf;
    c.field = b->view[1].buf;
    c.edges = b->view[2].buf;
    c.rows = b->view[2].shape[0];
    c.columns = b->view[2].shape[1];
    c.law = (Law){law, law + terms, law + 2 * terms, terms, offset};
    c.rule = (Rule){rule, rule + nodes, nodes};
    return c;
}

static PyObject *kernel_curves(PyObject *self, PyObject *args)
{
    PyObject *o[MOST_BUFFERS];
    Buffers b;
    double offset, low, per_bin, scale;
    PyObject *first;
    int with_loss;
    if (!PyArg_ParseTuple(args, "OOOOOdOOOdddp:curves", &o[0], &o[1], &o[2], &o[3], &o[4], &offset,
                          &o[5], &o[6], &first, &low, &per_bin, &scale, &with_loss))
        return NULL;
    if (!hold(&b, o, 7))
        return NULL;
    Py_buffer bins;
    if (PyObject_GetBuffer(first, &bins, PyBUF_C_CONTIGUOUS) < 0) {
        release(&b);
        return NULL;
    }
    Py_ssize_t rows = b.view[2].shape[0], knots = b.view[5].shape[1];
    double *work = NULL;
    int fine = fits(&b, 0, rows, SUMS) && fits(&b, 1, 5, rows) && fits(&b, 3, 3, -1) &&
               fits(&b, 4, 2, -1) && fits(&b, 5, 5, -1);
    if (fine) {
        Call c = call_of(&b, offset);
        const double *knot = b.view[5].buf;
        Py_ssize_t stride = b.view[6].shape[1];
        c.loss = (Loss){.cells = b.view[6].buf,
                        .first = bins.buf,
                        .stride = stride,
                        .powers = (stride - 3) / 3,
                        .bins = bins.len / (Py_ssize_t)sizeof(double),
                        .low = low,
                        .per_bin = per_bin,
                        .knot = knot,
                        .below = knot + knots,
                        .above = knot + 2 * knots,
                        .bend = knot + 3 * knots,
                        .kink = knot + 4 * knots,
                        .knots = knots,
                        .scale = scale};
        c.with_loss = with_loss;
        size_t most = (size_t)(2 * (FANNED + c.columns) + 6 * knots);
        work = PyMem_RawMalloc(most * sizeof(double));
        if (work) {
            Py_BEGIN_ALLOW_THREADS;
            curves(&c, work);
            Py_END_ALLOW_THREADS;
        } else {
            PyErr_NoMemory();
        }
    }
    PyMem_RawFree(work);
    PyBuffer_Release(&bins);
    release(&b);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *kernel_shares(PyObject *self, PyObject *args)
{
    PyObject *o[5];
    Buffers b;
    double offset;
    if (!PyArg_ParseTuple(args, "OOOOOd:shares", &o[0], &o[1], &o[2], &o[3], &o[4], &offset))
        return NULL;
    if (!hold(&b, o, 5))
        return NULL;
    Py_ssize_t rows = b.view[2].shape[0];
    int fine = fits(&b, 0, 1, rows) && fits(&b, 1, 2, rows) && fits(&b, 3, 3, -1) &&
               fits(&b, 4, 2, -1);
    if (fine) {
        Call c = call_of(&b, offset);
        Py_BEGIN_ALLOW_THREADS;
        shares(&c);
        Py_END_ALLOW_THREADS;
    }
    release(&b);
    if (!fine)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *kernel_normal(PyObject *self, PyObject *args)
{
    PyObject *o[2];
    Buffers b;
    if (!PyArg_ParseTuple(args, "OO:normal", &o[0], &o[1]))
        return NULL;
    if (!hold(&b, o, 2))
        return NULL;
    Py_ssize_t count = b.view[1].shape[1];
    int fine = fits(&b, 0, 2, count) && fits(&b, 1, 1, -1);
    if (fine)
        normal_law(b.view[1].buf, count, b.view[0].buf);
    release(&b);
    if (!fine)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"curves", kernel_curves, METH_VARARGS, "The sums along the proximal curve of each point."},
    {"shares", kernel_shares, METH_VARARGS, "The probability of a label over each point's panels."},
    {"normal", kernel_normal, METH_VARARGS, "The normal density and distribution function."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef module = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_kernel",
    .m_doc = "Averages along the proximal curve, compiled.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&module); }
