// NumPy arrays by the buffer protocol. Not in the header, so that one file compiles them.
#include "arrays.hpp"

#include <nanobind/ndarray.h>

#include <cstring>
#include <memory>

namespace klsa {
namespace {

// The kind of the numbers of a format, in the byte order of this machine; 0 for anything else.
char kind_of(const char* format) {
    if (std::strlen(format) != 1) return 0;
    if (*format == '?') return '?';
    return std::strchr("bhilq", *format)   ? 'i'
           : std::strchr("BHILQ", *format) ? 'u'
           : std::strchr("fd", *format)    ? 'f'
                                           : 0;
}

void release(void* buffer) noexcept {
    PyBuffer_Release(static_cast<Py_buffer*>(buffer));  // nothing if none was got
    delete static_cast<Py_buffer*>(buffer);
}

}  // namespace

bool ArrayArgument::load(nb::handle object, nb::detail::cleanup_list* cleanup, NumberType type, int dimensions,
                         bool is_written) noexcept {
    // Not moved until it is released: its shape may be a part of it.
    std::unique_ptr<Py_buffer, void (*)(void*) noexcept> held(new Py_buffer{}, release);
    Py_buffer& buffer = *held;
    const int wanted = PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | (is_written ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object.ptr(), &buffer, wanted)) {
        PyErr_Clear();
        return false;
    }
    if (buffer.ndim != dimensions || buffer.itemsize != type.size || kind_of(buffer.format) != type.kind) return false;
    data_ = buffer.buf;
    for (int i = 0; i < dimensions; i++) shape_[i] = size_t(buffer.shape[i]);
    owner_ = nb::capsule(held.release(), release).release();
    cleanup->append(owner_.ptr());
    return true;
}

nb::object new_array(void* data, NumberType type, const std::vector<size_t>& shape, nb::handle owner) {
    using Code = nb::dlpack::dtype_code;
    const Code code = type.kind == '?'   ? Code::Bool
                      : type.kind == 'i' ? Code::Int
                      : type.kind == 'u' ? Code::UInt
                                         : Code::Float;
    const nb::dlpack::dtype number{u8(code), u8(8 * type.size), 1};
    return nb::ndarray<nb::numpy>(data, shape.size(), shape.data(), owner, nullptr, number).cast();
}

}  // namespace klsa
