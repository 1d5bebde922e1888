/* The compiled extension: averages along the proximal curve for all points of a call, and the steps of
   Newton's method on small systems.

   All state is on the stack or belongs to the call, so that calls run on any number of threads; the
   long ones release the interpreter. Sums have LANES partial sums whatever the instruction set, so
   that only fused multiply-adds distinguish one machine from another. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>

#include "proximal_curve.h"

/* ------------------------------------------------------------------ all points of a call */

typedef struct {
    Loss loss;
    Law law;
    Rule rule;
    Settings settings;
    Py_ssize_t rows, columns;
    const double *V, *mean, *deviation, *slope, *V0, *beta; /* of each point */
    const double *edges;                                    /* marks of the label law, or of panels */
    double *e, *de, *data_loss, *norm, y, share;
    int with_loss;
} Call;

/* The averages of each point along its proximal curve. */
FOR_EACH_MACHINE static void averages(const Call *c, double *work)
{
    Loss loss = c->loss;
    Nodes n;
    double sums[SUMS];
    for (Py_ssize_t row = 0; row < c->rows; row++) {
        Py_ssize_t most = c->settings.fanned + c->columns + 2 * loss.knots;
        Point p = {.V = c->V[row],
                   .mean = c->mean[row],
                   .deviation = c->deviation[row],
                   .slope = c->slope[row],
                   .zeta = work,
                   .s = work + most,
                   .enter = work + 2 * most,
                   .leave = work + 2 * most + loss.knots};
        cut_curve(&p, &loss, c->edges + row * c->columns, c->columns);
        begin(&n, &c->law, row, p.slope, c->V0[row]);
        for (Py_ssize_t i = 0; i < c->rule.nodes; i += TOGETHER) {
            Py_ssize_t left = c->rule.nodes - i;
            Rule part = {c->rule.x + i, c->rule.w + i, left < TOGETHER ? left : TOGETHER};
            nodes_of(&n, &p, &loss, &part, c->with_loss);
        }
        total(&n, sums);
        for (int i = 0; i < SUMS; i++)
            sums[i] *= c->share;
        if (p.lost)
            sums[SUM_G] = NAN;
        assemble(&p, sums, c->y, c->beta[row], c->e + row * AVERAGES,
                 c->de + row * AVERAGES * UNKNOWNS);
        c->data_loss[row] = c->with_loss ? sums[SUM_LOSS] : NAN;
        c->norm[row] = sums[SUM_NORM];
    }
}

/* E[Z] of each point over its own panels. */
FOR_EACH_MACHINE static void shares(const Call *c)
{
    Nodes n;
    for (Py_ssize_t row = 0; row < c->rows; row++) {
        const double *edge = c->edges + row * c->columns;
        double sums[SUMS];
        begin(&n, &c->law, row, c->slope[row], c->V0[row]);
        for (Py_ssize_t i = 0; i + 1 < c->columns; i++) {
            double width = edge[i + 1] - edge[i];
            for (Py_ssize_t j = 0; width > 0.0 && j < c->rule.nodes; j++) {
                make_room(&n, 1);
                add_node(&n, edge[i] + width * c->rule.x[j], 0.0, width * c->rule.w[j], 0.0, 0.0);
            }
        }
        total(&n, sums);
        c->norm[row] = sums[SUM_NORM];
    }
}

static int all_finite(const double *values, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return 0;
    return 1;
}

static void swap(double *a, double *b)
{
    double was = *a;
    *a = *b;
    *b = was;
}

/* Gaussian elimination with pivots, in place; false if the matrix is singular. */
static int solved(double *a, double *x, int n)
{
    for (int i = 0; i < n; i++) {
        int pivot = i;
        for (int j = i + 1; j < n; j++)
            if (fabs(a[j * n + i]) > fabs(a[pivot * n + i]))
                pivot = j;
        if (a[pivot * n + i] == 0.0)
            return 0;
        for (int j = i; j < n; j++)
            swap(&a[i * n + j], &a[pivot * n + j]);
        swap(&x[i], &x[pivot]);
        for (int j = i + 1; j < n; j++) {
            double factor = a[j * n + i] / a[i * n + i];
            for (int l = i + 1; l < n; l++)
                a[j * n + l] -= factor * a[i * n + l];
            x[j] -= factor * x[i];
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int j = i + 1; j < n; j++)
            x[i] -= a[i * n + j] * x[j];
        x[i] /= a[i * n + i];
    }
    return 1;
}

/* ------------------------------------------------------------------ Python */

enum { MOST_ARRAYS = 24, LARGEST = 8 };

/* The arguments of a call, which come by name: C-contiguous arrays of doubles, held while a function
   works on them, and numbers. After the first that is wrong nothing more is read. */
typedef struct {
    PyObject *named;
    Py_buffer view[MOST_ARRAYS], nothing;
    Py_ssize_t no_shape[2];
    int count, failed;
} Arguments;

static PyObject *done(Arguments *a, PyObject *result)
{
    while (a->count)
        PyBuffer_Release(&a->view[--a->count]);
    return a->failed ? NULL : result;
}

static PyObject *argument(Arguments *a, const char *name)
{
    PyObject *found = a->failed || !a->named ? NULL : PyDict_GetItemString(a->named, name);
    if (!found && !a->failed) {
        a->failed = 1;
        PyErr_Format(PyExc_TypeError, "%s is missing", name);
    }
    return found;
}

static double number(Arguments *a, const char *name)
{
    PyObject *given = argument(a, name);
    double value = given ? PyFloat_AsDouble(given) : 0.0;
    a->failed = a->failed || (value == -1.0 && PyErr_Occurred());
    return value;
}

/* The named array, whose shape must be (rows, columns), or (rows) if columns is zero. A negative
   length stands for any. */
static Py_buffer *array(Arguments *a, const char *name, Py_ssize_t rows, Py_ssize_t columns,
                        int flags)
{
    PyObject *given = argument(a, name);
    a->nothing.shape = a->no_shape;
    if (!given)
        return &a->nothing;
    Py_buffer *view = &a->view[a->count];
    if (PyObject_GetBuffer(given, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | flags) < 0) {
        a->failed = 1;
        return &a->nothing;
    }
    a->count++;
    if (strcmp(view->format, "d") || view->ndim != (columns ? 2 : 1) ||
        (rows >= 0 && view->shape[0] != rows) || (columns > 0 && view->shape[1] != columns)) {
        a->failed = 1;
        PyErr_Format(PyExc_ValueError, "%s is not an array of doubles of the expected shape", name);
        return &a->nothing;
    }
    return view;
}

static const double *given(Arguments *a, const char *name, Py_ssize_t rows, Py_ssize_t columns)
{
    return array(a, name, rows, columns, 0)->buf;
}

static double *written(Arguments *a, const char *name, Py_ssize_t rows, Py_ssize_t columns)
{
    return array(a, name, rows, columns, PyBUF_WRITABLE)->buf;
}

/* What calls share: edges, the label law, the teacher's field and the quadrature rule. */
static Call call_of(Arguments *a)
{
    const Py_ssize_t any = -1;
    Py_buffer *edges = array(a, "edges", any, any, 0), *terms = array(a, "terms", 3, any, 0);
    Py_buffer *cells = array(a, "law_cells", any, 3, 0), *rule = array(a, "rule", 2, any, 0);
    Py_ssize_t rows = edges->shape[0], count = cells->shape[0], nodes = rule->shape[1];
    const double *term = terms->buf, *x = rule->buf, *constant = given(a, "constant", 3, 0);
    Call c = {.rows = rows,
              .columns = edges->shape[1],
              .edges = edges->buf,
              .slope = given(a, "slope", rows, 0),
              .V0 = given(a, "V0", rows, 0),
              .norm = written(a, "norm", rows, 0),
              .rule = {x, x + nodes, nodes},
              .law = {.weight = term,
                      .threshold = term + terms->shape[1],
                      .variance = term + 2 * terms->shape[1],
                      .terms = terms->shape[1],
                      .cells = cells->buf,
                      .count = count}};
    if (count)
        c.law.polynomials = given(a, "law_polynomials", rows, count * POWERS * OF_A_POWER);
    if (!a->failed)
        memcpy(c.law.constant, constant, sizeof c.law.constant);
    return c;
}

/* The knots of a loss and its polynomials on cells. */
static Loss loss_of(Arguments *a)
{
    const Py_ssize_t any = -1;
    Py_buffer *knots = array(a, "knots", 5, any, 0), *cells = array(a, "loss_cells", any, any, 0);
    Py_buffer *first = array(a, "first", any, 0, 0);
    Py_ssize_t n = knots->shape[1], stride = cells->shape[1];
    const double *knot = knots->buf;
    Loss loss = {.knot = knot,
                 .below = knot + n,
                 .above = knot + 2 * n,
                 .bend = knot + 3 * n,
                 .kink = knot + 4 * n,
                 .knots = n,
                 .cells = cells->buf,
                 .stride = stride,
                 .pairs = (stride - 3) / 6,
                 .first = first->buf,
                 .bins = first->shape[0],
                 .low = number(a, "low"),
                 .per_bin = number(a, "per_bin"),
                 .scale = number(a, "scale")};
    if (!a->failed && loss.pairs < 2) {
        a->failed = 1;
        PyErr_SetString(PyExc_ValueError, "loss_cells has too few columns");
    }
    for (Py_ssize_t i = 0; !a->failed && i < n; i++) {
        loss.kinks |= loss.kink[i] != 0.0;
        loss.jumps |= loss.above[i] > loss.below[i];
    }
    return loss;
}

static Settings settings_of(Arguments *a)
{
    Py_buffer *fan = array(a, "fan", -1, 0, 0);
    return (Settings){.fan = fan->buf,
                      .fanned = fan->shape[0],
                      .reach = number(a, "reach"),
                      .flat = number(a, "flat"),
                      .narrow = number(a, "narrow"),
                      .aside = number(a, "aside"),
                      .narrowest = number(a, "narrowest"),
                      .slender = number(a, "slender"),
                      .point = number(a, "point"),
                      .patience = (int)number(a, "patience"),
                      .close = (int)number(a, "close")};
}

static PyObject *python_averages(PyObject *self, PyObject *unnamed, PyObject *named)
{
    Arguments a = {.named = named};
    Call c = call_of(&a);
    c.V = given(&a, "V", c.rows, 0);
    c.mean = given(&a, "mean", c.rows, 0);
    c.deviation = given(&a, "deviation", c.rows, 0);
    c.beta = given(&a, "beta", c.rows, 0);
    c.e = written(&a, "e", c.rows, AVERAGES);
    c.de = written(&a, "de", c.rows, AVERAGES * UNKNOWNS);
    c.data_loss = written(&a, "data_loss", c.rows, 0);
    c.y = number(&a, "y");
    c.share = number(&a, "share");
    c.with_loss = number(&a, "with_loss") != 0.0;
    c.settings = settings_of(&a);
    c.loss = loss_of(&a);
    c.loss.settings = &c.settings;
    if (a.failed)
        return done(&a, NULL);
    size_t n = (size_t)c.loss.knots, cuts = (size_t)(c.settings.fanned + c.columns) + 2 * n;
    double *work = malloc((2 * cuts + 2 * n) * sizeof(double));
    if (!work)
        return done(&a, PyErr_NoMemory());
    Py_BEGIN_ALLOW_THREADS;
    averages(&c, work);
    Py_END_ALLOW_THREADS;
    free(work);
    return done(&a, Py_NewRef(Py_None));
}

static PyObject *python_shares(PyObject *self, PyObject *unnamed, PyObject *named)
{
    Arguments a = {.named = named};
    Call c = call_of(&a);
    if (a.failed)
        return done(&a, NULL);
    Py_BEGIN_ALLOW_THREADS;
    shares(&c);
    Py_END_ALLOW_THREADS;
    return done(&a, Py_NewRef(Py_None));
}

/* Whether all matrices are regular. A step that is not finite, or whose matrix is not, is the
   residual. */
static PyObject *python_newton_step(PyObject *self, PyObject *unnamed, PyObject *named)
{
    Arguments a = {.named = named};
    Py_buffer *residuals = array(&a, "residual", -1, -1, 0);
    Py_ssize_t rows = residuals->shape[0], n = residuals->shape[1];
    const double *matrices = given(&a, "matrix", rows, n * n);
    double *steps = written(&a, "step", rows, n);
    if (!a.failed && n > LARGEST) {
        a.failed = 1;
        PyErr_Format(PyExc_ValueError, "residual has more than %d columns", LARGEST);
    }
    if (a.failed)
        return done(&a, NULL);
    size_t bytes = (size_t)n * sizeof(double);
    int regular = 1;
    Py_BEGIN_ALLOW_THREADS;
    for (Py_ssize_t row = 0; row < rows && regular; row++) {
        double *step = steps + row * n, matrix[LARGEST * LARGEST];
        const double *residual = (const double *)residuals->buf + row * n;
        memcpy(matrix, matrices + row * n * n, (size_t)n * bytes);
        memcpy(step, residual, bytes);
        if (all_finite(matrix, n * n))
            regular = solved(matrix, step, (int)n);
        if (!all_finite(step, n))
            memcpy(step, residual, bytes);
    }
    Py_END_ALLOW_THREADS;
    return done(&a, PyBool_FromLong(regular));
}

#define BY_NAME(function) ((PyCFunction)(void (*)(void))(function)), METH_VARARGS | METH_KEYWORDS
static PyMethodDef methods[] = {
    {"averages", BY_NAME(python_averages), "Averages along the proximal curve of each point."},
    {"shares", BY_NAME(python_shares), "The probability of a label over each point's panels."},
    {"newton_step", BY_NAME(python_newton_step), "Solutions of small linear systems."},
    {NULL, NULL, 0, NULL},
};

/* The names behind the orders of averages and unknowns. */
static int add_names(PyObject *module)
{
#define LETTER(name) "s"
#define NAME(name) , #name
    PyObject *averages = Py_BuildValue("(" ALL_AVERAGES(LETTER) ")" ALL_AVERAGES(NAME));
    PyObject *unknowns = Py_BuildValue("(" ALL_UNKNOWNS(LETTER) ")" ALL_UNKNOWNS(NAME));
    int failed = PyModule_AddObjectRef(module, "AVERAGES", averages) < 0 ||
                 PyModule_AddObjectRef(module, "UNKNOWNS", unknowns) < 0;
    Py_XDECREF(averages);
    Py_XDECREF(unknowns);
    return failed ? -1 : 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, add_names},
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
    .m_name = "_extension",
    .m_doc = "Averages along the proximal curve, compiled.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__extension(void) { return PyModuleDef_Init(&module); }
