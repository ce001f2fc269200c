/* SPDX-License-Identifier: Apache-2.0 */
/* The native half of slipway.Model: the C interface of models (slipway.h), one function a method.
 *
 * Text goes through Java's modified UTF-8, so names and paths beyond the 16-bit plane do not pass. */
#include <jni.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "slipway.h"

#define MAX_NDIM 16

#define NATIVE(type, name) JNIEXPORT type JNICALL Java_slipway_Model_##name

static slw_model *model_of(jlong handle) { return (slw_model *)(intptr_t)handle; }

/* Throw a SlipwayException; if that cannot be, Java's own error is pending. */
static void throw_error(JNIEnv *env, const char *kind, const char *message) {
  jclass type = (*env)->FindClass(env, "slipway/SlipwayException");
  jmethodID make;
  jstring kind_text, message_text;
  jobject made;
  if (type == NULL) {
    return;
  }
  make = (*env)->GetMethodID(env, type, "<init>", "(Ljava/lang/String;Ljava/lang/String;)V");
  kind_text = (make != NULL) ? (*env)->NewStringUTF(env, kind) : NULL;
  message_text = (kind_text != NULL) ? (*env)->NewStringUTF(env, message) : NULL;
  made = (message_text != NULL) ? (*env)->NewObject(env, type, make, kind_text, message_text) : NULL;
  if (made != NULL) {
    (*env)->Throw(env, (jthrowable)made);
  }
}

static void throw_last(JNIEnv *env) { throw_error(env, slw_error_kind(), slw_error_message()); }

static const DLTensor *tensor_of(JNIEnv *env, jlong handle, jint index, int is_input) {
  const DLTensor *found = is_input ? slw_model_input(model_of(handle), index)
                                   : slw_model_output(model_of(handle), index);
  if (found == NULL) {
    throw_error(env, "IndexError",
                is_input ? "the model has no input of that number"
                         : "the model has no output of that number");
  }
  return found;
}

static size_t bytes_of(const DLTensor *tensor) {
  size_t bits = (size_t)tensor->dtype.bits * tensor->dtype.lanes;
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    bits *= (size_t)tensor->shape[i];
  }
  return (bits + 7) / 8;
}

NATIVE(jlong, open)(JNIEnv *env, jclass type, jstring path) {
  slw_model *made = NULL;
  const char *text = (path != NULL) ? (*env)->GetStringUTFChars(env, path, NULL) : NULL;
  (void)type;
  if (text == NULL) {
    if (path == NULL) {
      throw_error(env, "ValueError", "a model's path is null");
    }
    return 0;
  }
  if (slw_model_open(text, &made) != SLW_OK) {
    throw_last(env);
  }
  (*env)->ReleaseStringUTFChars(env, path, text);
  return (jlong)(intptr_t)made;
}

NATIVE(void, close)(JNIEnv *env, jclass type, jlong handle) {
  (void)env;
  (void)type;
  slw_model_close(model_of(handle));
}

static jobjectArray names_of(JNIEnv *env, const slw_model *model, int32_t count,
                             const char *(*name_of)(const slw_model *model, int32_t index)) {
  jclass text = (*env)->FindClass(env, "java/lang/String");
  jobjectArray names = (text != NULL) ? (*env)->NewObjectArray(env, count, text, NULL) : NULL;
  for (jsize i = 0; i < count && names != NULL; ++i) {
    jstring name = (*env)->NewStringUTF(env, name_of(model, i));
    if (name == NULL) {
      return NULL;
    }
    (*env)->SetObjectArrayElement(env, names, i, name);
    (*env)->DeleteLocalRef(env, name);
  }
  return names;
}

NATIVE(jobjectArray, inputNames)(JNIEnv *env, jclass type, jlong handle) {
  const slw_model *model = model_of(handle);
  (void)type;
  return names_of(env, model, slw_model_num_inputs(model), slw_model_input_name);
}

NATIVE(jobjectArray, outputNames)(JNIEnv *env, jclass type, jlong handle) {
  const slw_model *model = model_of(handle);
  (void)type;
  return names_of(env, model, slw_model_num_outputs(model), slw_model_output_name);
}

NATIVE(jlongArray, shape)(JNIEnv *env, jclass type, jlong handle, jint index, jboolean is_input) {
  const DLTensor *tensor = tensor_of(env, handle, index, is_input == JNI_TRUE);
  jlongArray made = (tensor != NULL) ? (*env)->NewLongArray(env, tensor->ndim) : NULL;
  (void)type;
  for (int32_t i = 0; made != NULL && i < tensor->ndim; ++i) {
    const jlong extent = tensor->shape[i];
    (*env)->SetLongArrayRegion(env, made, i, 1, &extent);
  }
  return made;
}

NATIVE(jstring, type)(JNIEnv *env, jclass type, jlong handle, jint index, jboolean is_input) {
  const DLTensor *tensor = tensor_of(env, handle, index, is_input == JNI_TRUE);
  char text[24];
  (void)type;
  if (tensor == NULL) {
    return NULL;
  }
  slw_dtype_text(tensor->dtype, text, sizeof text);
  return (*env)->NewStringUTF(env, text);
}

static int is_float32(const DLTensor *tensor) {
  return tensor->dtype.code == kDLFloat && tensor->dtype.bits == 32;
}

/* Whether floats are what the input of that name takes; of an unknown one the runtime speaks. */
static int takes_floats(JNIEnv *env, const slw_model *model, const char *name) {
  for (int32_t i = 0; i < slw_model_num_inputs(model); ++i) {
    const DLTensor *input = slw_model_input(model, i);
    if ((name == NULL || strcmp(name, slw_model_input_name(model, i)) == 0) && input != NULL &&
        !is_float32(input)) {
      throw_error(env, "TypeError", "the input is not of float32: give its bytes");
      return 0;
    }
  }
  return 1;
}

static void set_input(JNIEnv *env, jlong handle, jstring name, jarray values, size_t item_bytes,
                      jlongArray shape) {
  const char *text = NULL;
  void *data;
  size_t size_bytes;
  jlong extents[MAX_NDIM] = {0};
  int64_t sizes[MAX_NDIM];
  jsize ndim = 0;
  slw_status status = SLW_OK;
  if (values == NULL) {
    throw_error(env, "ValueError", "the values of an input are null");
    return;
  }
  if (shape != NULL && (ndim = (*env)->GetArrayLength(env, shape)) > MAX_NDIM) {
    throw_error(env, "ValueError", "a shape has at most 16 dimensions");
    return;
  }
  if (shape != NULL) {
    (*env)->GetLongArrayRegion(env, shape, 0, ndim, extents);
  }
  for (jsize i = 0; i < ndim; ++i) {
    sizes[i] = extents[i];
  }
  size_bytes = item_bytes * (size_t)(*env)->GetArrayLength(env, values);
  if (name != NULL && (text = (*env)->GetStringUTFChars(env, name, NULL)) == NULL) {
    return;
  }
  if (item_bytes > 1 && !takes_floats(env, model_of(handle), text)) {
    if (text != NULL) {
      (*env)->ReleaseStringUTFChars(env, name, text);
    }
    return;
  }
  data = (*env)->GetPrimitiveArrayCritical(env, values, NULL); /* no call to Java until released */
  if (data != NULL) {
    status = (shape == NULL) ? slw_model_set_input(model_of(handle), text, data, size_bytes)
                             : slw_model_set_input_shaped(model_of(handle), text, data, size_bytes,
                                                          sizes, ndim);
    (*env)->ReleasePrimitiveArrayCritical(env, values, data, JNI_ABORT);
  }
  if (text != NULL) {
    (*env)->ReleaseStringUTFChars(env, name, text);
  }
  if (status != SLW_OK) {
    throw_last(env);
  }
}

NATIVE(void, setFloats)(JNIEnv *env, jclass type, jlong handle, jstring name, jfloatArray values,
                        jlongArray shape) {
  (void)type;
  set_input(env, handle, name, values, sizeof(jfloat), shape);
}

NATIVE(void, setBytes)(JNIEnv *env, jclass type, jlong handle, jstring name, jbyteArray values,
                       jlongArray shape) {
  (void)type;
  set_input(env, handle, name, values, 1, shape);
}

NATIVE(void, run)(JNIEnv *env, jclass type, jlong handle) {
  (void)type;
  if (slw_model_run(model_of(handle)) != SLW_OK) {
    throw_last(env);
  }
}

NATIVE(void, resetStates)(JNIEnv *env, jclass type, jlong handle) {
  (void)type;
  if (slw_model_reset_states(model_of(handle)) != SLW_OK) {
    throw_last(env);
  }
}

NATIVE(jfloatArray, getFloats)(JNIEnv *env, jclass type, jlong handle, jint index) {
  const DLTensor *tensor = tensor_of(env, handle, index, 0);
  jfloatArray made = NULL;
  (void)type;
  if (tensor == NULL) {
    return NULL;
  }
  if (!is_float32(tensor)) {
    throw_error(env, "TypeError", "the output is not of float32: take its bytes (getBytes)");
    return NULL;
  }
  made = (*env)->NewFloatArray(env, (jsize)(bytes_of(tensor) / sizeof(jfloat)));
  if (made != NULL) {
    const jfloat *from = (const jfloat *)(const void *)((const char *)tensor->data + tensor->byte_offset);
    (*env)->SetFloatArrayRegion(env, made, 0, (*env)->GetArrayLength(env, made), from);
  }
  return made;
}

NATIVE(jbyteArray, getBytes)(JNIEnv *env, jclass type, jlong handle, jint index) {
  const DLTensor *tensor = tensor_of(env, handle, index, 0);
  jbyteArray made = NULL;
  (void)type;
  if (tensor != NULL && (made = (*env)->NewByteArray(env, (jsize)bytes_of(tensor))) != NULL) {
    const jbyte *from = (const jbyte *)tensor->data + tensor->byte_offset;
    (*env)->SetByteArrayRegion(env, made, 0, (*env)->GetArrayLength(env, made), from);
  }
  return made;
}
